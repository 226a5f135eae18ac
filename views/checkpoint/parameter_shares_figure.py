"""Where the trained numbers of a model are, part by part."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import plotly.graph_objects as go

from charts.toolkit import parts, style
from charts.toolkit.checks import as_array, require_same_length
from charts.toolkit.sheet import Sheet


def parameter_shares(shares: Any, *, names: Sequence[str]) -> go.Figure:
    """Draw a bar for the share of all trained numbers that each part has, in percent, the largest on top.

    ``shares``: [part], from 0 to 100.
    """
    values = as_array(shares, name="shares", axes=("part",), signed=False)
    require_same_length("names", names, expected=len(values), of="bars")
    shown = [style.percent_digits(value / 100) for value in values]
    figure = Sheet(parts.bar_rows(values, hover="%{y}") | {"text": shown})
    style.finish(figure, height=style.rows_height(len(values), around=50))
    figure.update_xaxes(visible=False, range=parts.bar_range(values, share=0.12))
    figure.update_yaxes(**style.label_rows(list(map(str, names)), title=""))
    return figure.drawn()
