"""What each patch of an image contributes: the image in ink, each patch in the colour of its number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from charts.toolkit import style
from charts.toolkit.checks import as_array
from charts.toolkit.numbers import number
from charts.toolkit.sheet import Sheet
from charts.toolkit.words import say

_INK, _PAPER = "#1b2430", "#ffffff"  # on a page of either theme
_RAISES, _LOWERS = "213, 94, 0", "0, 114, 178"


def patch_contributions(contributions: Any, *, ink: Any, names: Sequence[str], of: str) -> go.Figure:
    """Draw a square image, each patch in the colour of what it adds to p(``of``).

    ``contributions``: [patch], −1…1; ``ink``: [patch, row, column], 0 to 1; ``names``: the names of the patches.
    """
    values = as_array(contributions, name="contributions", axes=("patch",), sizes={"patch": len(names)})
    patches = as_array(ink, name="ink", axes=("patch", "row", "column"), sizes={"patch": len(names)})
    across, size = round(len(names) ** 0.5), patches.shape[1]
    side = across * size
    image = patches.reshape(across, across, size, size).transpose(0, 2, 1, 3).reshape(side, side)
    scale = {"colorscale": [[0, _PAPER], [1, _INK]], "zmin": 0, "zmax": 1, "showscale": False}
    figure = Sheet({"type": "heatmap", "z": image.astype(np.float32), **scale, "hoverinfo": "skip"})
    largest = max(float(np.nanmax(np.abs(values))), 1e-9)
    middles = [
        (column * size + size / 2 - 0.5, row * size + size / 2 - 0.5) for row, column in np.ndindex(across, across)
    ]
    for (x, y), value in zip(middles, values.tolist(), strict=True):
        sides = (x - size / 2, x + size / 2), (y - size / 2, y + size / 2)
        colour = f"rgba({_RAISES if value > 0 else _LOWERS}, {0.75 * abs(value) / largest:.3f})"
        figure.add_box(*sides, line={"color": style.NEUTRAL, "width": 1}, fillcolor=colour)
        paper = {"bgcolor": "rgba(255, 255, 255, 0.8)", "font": {"color": _INK}}
        figure.add_annotation(text=number(f"{value:+.2f}"), x=x, y=y, **paper)
    figure.scatter(
        x=[x for x, _ in middles],
        y=[y for _, y in middles],
        mode="markers",
        marker={"opacity": 0, "size": 40},
        text=[style.escape(name) for name in names],
        customdata=values,
        hovertemplate=style.hover(
            "%{text}", say("decoding.lost_without_patch", name=style.escape(of)), style.exact("customdata")
        ),
    )
    style.finish(figure, height=340, top=8)
    bare: dict[str, Any] = {"visible": False, "fixedrange": True, "constrain": "domain"}
    figure.update_xaxes(**bare, range=[-0.6, side - 0.4])
    figure.update_yaxes(**bare, range=[side - 0.4, -0.6], scaleanchor="x")
    figure.update_layout(showlegend=False)
    return figure.drawn()
