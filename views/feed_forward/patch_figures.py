"""Figures of one unit of a vision model: where it fires in the image, and its strongest patches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from charts.toolkit import style
from charts.toolkit.checks import as_array, require_same_length
from charts.toolkit.patch_drawing import add_hover, add_number, box_of, pixels, square, whole_image
from charts.toolkit.sheet import Sheet
from charts.toolkit.words import _

_HEIGHT = 320  # pixels
_PER_ROW, _APART = 4, 1  # patches in a row, and the pixels between two of them
_WRITTEN = 0.1  # share of the largest value from which values are written


def firing_in_image(values: Any, *, ink: Any, names: Sequence[str], followed: int | None = None) -> go.Figure:
    """Draw an image with a unit's value on each of its patches; the more orange, the larger.

    ``values``: [patch]; ``ink``: [patch, row, column], 0 to 1; ``names``: of the patches; ``followed``: the patch that
    has a frame.
    """
    heights = as_array(values, name="values", axes=("patch",))
    patches = as_array(ink, name="ink", axes=("patch", "row", "column"), sizes={"patch": len(heights)})
    require_same_length("names", names, expected=len(heights), of="values")
    across, size, image = round(len(heights) ** 0.5), patches.shape[1], whole_image(patches)
    figure = Sheet(pixels(image))
    largest = max(float(heights.max()), 1e-9)
    for index, value in enumerate(heights.tolist()):
        box, share = box_of(index, across=across, size=size), max(0.0, value / largest)
        line = {"color": style.CHOSEN if index == followed else style.QUIET, "width": 5 if index == followed else 1}
        figure.add_shape(type="rect", **box, line=line, fillcolor=f"rgba(213, 94, 0, {0.75 * share:.3f})")
        if share >= _WRITTEN:
            add_number(figure, f"<b>{style.three_digits(value)}</b>", box=box)
    hover = style.hover("%{text}", _("hidden value"), style.exact("customdata"))
    add_hover(figure, names, values=heights, size=size, hover=hover)
    return square(figure, image.shape, height=_HEIGHT)


def strongest_patches(ink: Any, *, values: Any) -> go.Figure:
    """Draw image patches in rows, each above the value of a unit.

    ``ink``: [patch, row, column], 0 to 1; ``values``: [patch].
    """
    patches = as_array(ink, name="ink", axes=("patch", "row", "column"))
    heights = as_array(values, name="values", axes=("patch",), sizes={"patch": len(patches)})
    size = patches.shape[1]
    step = size + _APART
    rows = -(-len(patches) // _PER_ROW)
    image = np.full((rows * step, _PER_ROW * step - _APART), np.nan)
    places = [divmod(index, _PER_ROW) for index in range(len(patches))]
    for patch, (row, column) in zip(patches, places, strict=True):
        image[row * step : row * step + size, column * step : column * step + size] = patch
    figure = Sheet(pixels(image))
    for (row, column), value in zip(places, heights.tolist(), strict=True):
        x, y = column * step - 0.5, row * step - 0.5
        box = {"x0": x, "x1": x + size, "y0": y, "y1": y + size}
        figure.add_shape(type="rect", **box, line={"color": style.NEUTRAL, "width": 1})
        figure.add_annotation(text=style.three_digits(value), x=x + size / 2, y=y + size, yanchor="top")
    return square(figure, image.shape, height=_HEIGHT)
