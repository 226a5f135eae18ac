"""Distributions: a histogram of each array, its mean and standard deviation, a tick per number."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import plotly.graph_objects as go

from charts.toolkit import style
from charts.toolkit.checks import as_array
from charts.toolkit.sheet import stack_panels, stacked_height
from charts.toolkit.words import say

_HEIGHT = 150.0  # pixels of a panel
_COLOURS = (style.CATEGORICAL[1], style.CATEGORICAL[0])  # of the first panel and of the second


def distributions(panels: Mapping[str, Any], *, place: str, across: str) -> go.Figure:
    """Draw the histogram of each array, [position], below its name, each on a scale of its own.

    Solid lines are the mean, dotted ones mean ± standard deviation. ``place`` is the hover text of a number, with its
    index as ``%{customdata}``; ``across`` is the title of the axis of values.
    """
    heights = [_HEIGHT] * len(panels)
    figure = stack_panels(list(panels), heights=heights)
    for row, (name, given) in enumerate(panels.items(), start=1):
        values = as_array(given, name=name, axes=("position",))
        counts, edges = np.histogram(values, bins=30)
        ends = {end: f"%{{customdata[{number}]:{style.EXACT}}}" for number, end in enumerate(("low", "high"))}
        figure.bar(
            x=((edges[:-1] + edges[1:]) / 2).astype(np.float32),
            y=counts,
            width=np.diff(edges).astype(np.float32),
            marker={"color": _COLOURS[(row - 1) % len(_COLOURS)], "line": {"width": 0}},
            customdata=np.stack([edges[:-1], edges[1:]], axis=1).astype(np.float32),
            hovertemplate=style.hover(
                say("add_norm.share_between", share="<b>%{y}</b>"), say("add_norm.low_and_high", **ends)
            ),
            row=row,
        )
        figure.scatter(
            x=values,
            y=np.full(len(values), -0.06 * counts.max(), dtype=np.float32),
            customdata=np.arange(len(values), dtype=np.int32),
            mode="markers",
            marker={"symbol": "line-ns", "size": 9, "line": {"width": 1, "color": style.NEUTRAL}},
            hovertemplate=style.hover(place, style.exact("x")),
            row=row,
        )
        mean, std = float(values.mean()), float(values.std())
        for x, width, dash in ((mean, 2, "solid"), (mean - std, 1.5, "dot"), (mean + std, 1.5, "dot")):
            figure.add_vline(x=x, line={"color": style.NEUTRAL, "width": width, "dash": dash}, row=row)
    style.finish(figure, height=stacked_height(heights, around=110), top=32)
    figure.update_layout(bargap=0)
    figure.update_xaxes(showticklabels=True, zeroline=False, matches=None)
    figure.update_xaxes(title_text=across, row=len(panels))
    figure.update_yaxes(title_text=say("add_norm.number_values"))
    return figure.drawn()
