"""Larger letters and lines for Altair figures, like ``charts.toolkit.style.enlarge`` for Plotly's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from charts.toolkit.numbers import signs
from charts.toolkit.style import TEXT_SIZE

if TYPE_CHECKING:
    import altair as alt

_USUAL = {"labelFontSize": TEXT_SIZE, "titleFontSize": TEXT_SIZE}  # if a figure does not set them
_LENGTHS = ("fontSize", "labelFontSize", "titleFontSize", "strokeWidth", "height", "minExtent", "maxExtent")


def localize_numbers(figure: alt.TopLevelMixin) -> Any:
    """Return the figure with numbers in the reader's notation; ``style.finish`` does so for Plotly."""
    decimal, group = signs()
    if (decimal, group) == (".", ","):
        return figure
    number = {"decimal": decimal, "thousands": group, "grouping": [3], "currency": ["", ""]}
    return figure.configure(locale={"number": number})


def enlarge(figure: alt.TopLevelMixin, *, factor: float) -> Any:
    """Return a copy with every font, line and point and the height ``factor`` times as large."""
    if not factor > 0:
        raise ValueError(f"factor is {factor!r}; a figure can only be enlarged by a number greater than 0")

    specification = scale_specification(figure.to_dict(), factor, points=factor)
    config = specification.setdefault("config", {})
    for part in ("axis", "legend"):
        for name, size in _USUAL.items():
            config.setdefault(part, {}).setdefault(name, size * factor)
    return type(figure).from_dict(specification, validate=False)  # type: ignore[attr-defined]  # every chart has it


def scale_specification(node: Any, factor: float, *, points: float) -> Any:
    """Scale letters, lines and the height in a specification by ``factor``, sizes of points by ``points``.

    Data stay unchanged.
    """
    if isinstance(node, list):
        return [scale_specification(child, factor, points=points) for child in node]
    if not isinstance(node, dict):
        return node
    times = {**dict.fromkeys(_LENGTHS, factor), "size": points}
    result = {}
    for name, child in node.items():
        is_number = isinstance(child, int | float) and not isinstance(child, bool)
        kept = name in ("datasets", "values")
        deeper = child if kept else scale_specification(child, factor, points=points)
        result[name] = child * times[name] if name in times and is_number else deeper
    return result
