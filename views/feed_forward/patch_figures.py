"""Figures of one unit of a vision model: where it fires in the image, and its strongest patches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from charts.toolkit import style
from charts.toolkit.checks import as_array, require_same_length
from charts.toolkit.sheet import Sheet
from charts.toolkit.words import _

_HEIGHT = 320  # pixels
_INK = [[0, "#ffffff"], [1, "#1b2430"]]  # paper and ink, on a page of either theme
_PER_ROW, _APART = 4, 1  # patches in a row, and the pixels between two of them
_WRITTEN = 0.1  # share of the largest value from which values are written


def firing_in_image(values: Any, *, ink: Any, names: Sequence[str], followed: int | None = None) -> go.Figure:
    """Draw an image with a unit's value on each of its patches; the more orange, the larger.

    ``values``: [patch]; ``ink``: [patch, row, column], 0 to 1; ``names``: of the patches; ``followed``: the patch that
    has a frame.
    """
    heights = as_array(values, name="values", axes=("patch",))
    pixels = as_array(ink, name="ink", axes=("patch", "row", "column"), sizes={"patch": len(heights)})
    require_same_length("names", names, expected=len(heights), of="values")
    across, size = round(len(heights) ** 0.5), pixels.shape[1]
    image = pixels.reshape(across, across, size, size).transpose(0, 2, 1, 3).reshape(across * size, across * size)
    figure = Sheet(_pixels(image))
    largest = max(float(heights.max()), 1e-9)
    for index, value in enumerate(heights.tolist()):
        row, column = divmod(index, across)
        box = {"x0": column * size - 0.5, "y0": row * size - 0.5}
        box |= {"x1": box["x0"] + size, "y1": box["y0"] + size}
        share = max(0.0, value / largest)
        line = {"color": style.CHOSEN if index == followed else style.QUIET, "width": 5 if index == followed else 1}
        figure.add_shape(type="rect", **box, line=line, fillcolor=f"rgba(213, 94, 0, {0.75 * share:.3f})")
        if share >= _WRITTEN:
            figure.add_annotation(
                text=f"<b>{style.three_digits(value)}</b>",
                x=(box["x0"] + box["x1"]) / 2,
                y=(box["y0"] + box["y1"]) / 2,
                bgcolor="rgba(255, 255, 255, 0.8)",
                font={"color": "#1b2430"},
            )
    figure.scatter(
        x=[(index % across + 0.5) * size - 0.5 for index in range(len(heights))],
        y=[(index // across + 0.5) * size - 0.5 for index in range(len(heights))],
        mode="markers",
        marker={"opacity": 0, "size": 40},
        text=[style.escape(name) for name in names],
        customdata=heights,
        hovertemplate=style.hover("%{text}", _("hidden value"), style.exact("customdata")),
    )
    return _square(figure, image.shape)


def strongest_patches(ink: Any, *, values: Any) -> go.Figure:
    """Draw image patches in rows, each above the value of a unit.

    ``ink``: [patch, row, column], 0 to 1; ``values``: [patch].
    """
    pixels = as_array(ink, name="ink", axes=("patch", "row", "column"))
    heights = as_array(values, name="values", axes=("patch",), sizes={"patch": len(pixels)})
    size = pixels.shape[1]
    step = size + _APART
    rows = -(-len(pixels) // _PER_ROW)
    image = np.full((rows * step, _PER_ROW * step - _APART), np.nan)
    places = [divmod(index, _PER_ROW) for index in range(len(pixels))]
    for patch, (row, column) in zip(pixels, places, strict=True):
        image[row * step : row * step + size, column * step : column * step + size] = patch
    figure = Sheet(_pixels(image))
    for (row, column), value in zip(places, heights.tolist(), strict=True):
        x, y = column * step - 0.5, row * step - 0.5
        box = {"x0": x, "x1": x + size, "y0": y, "y1": y + size}
        figure.add_shape(type="rect", **box, line={"color": style.NEUTRAL, "width": 1})
        figure.add_annotation(text=style.three_digits(value), x=x + size / 2, y=y + size, yanchor="top")
    return _square(figure, image.shape)


def _pixels(image: np.ndarray) -> dict[str, Any]:
    return {
        "type": "heatmap",
        "z": image.astype(np.float32),
        "colorscale": _INK,
        "zmin": 0,
        "zmax": 1,
        "showscale": False,
        "hoverinfo": "skip",
    }


def _square(figure: Sheet, shape: tuple[int, ...]) -> go.Figure:
    """Hide the axes and give pixels equal sides."""
    style.finish(figure, height=_HEIGHT, top=8)
    bare = {"visible": False, "fixedrange": True, "constrain": "domain"}
    figure.update_xaxes(**bare, range=[-0.6, shape[1] - 0.4])
    figure.update_yaxes(**bare, range=[shape[0] - 0.4, -0.6], scaleanchor="x")
    figure.update_layout(showlegend=False)
    return figure.drawn()
