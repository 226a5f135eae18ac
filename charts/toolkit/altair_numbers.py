"""Numbers of Altair figures in the reader's notation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from charts.toolkit.numbers import signs

if TYPE_CHECKING:
    import altair as alt


def localize_numbers(figure: alt.TopLevelMixin) -> Any:
    """Return the figure with numbers in the reader's notation; ``style.finish`` does so for Plotly."""
    decimal, group = signs()
    if (decimal, group) == (".", ","):
        return figure
    number = {"decimal": decimal, "thousands": group, "grouping": [3], "currency": ["", ""]}
    return figure.configure(locale={"number": number})
