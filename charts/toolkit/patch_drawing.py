"""Images that are cut into square patches: their ink, the place of each patch, and its hover text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from charts.toolkit import style
from charts.toolkit.sheet import Sheet

_INK = [[0, "#ffffff"], [1, "#1b2430"]]  # paper and ink, on a page of either theme


def whole_image(patches: np.ndarray) -> np.ndarray:
    """Put the patches of a square image together: [patch, row, column] → [row, column]."""
    across, size = round(len(patches) ** 0.5), patches.shape[1]
    return patches.reshape(across, across, size, size).transpose(0, 2, 1, 3).reshape(across * size, across * size)


def pixels(image: np.ndarray) -> dict[str, Any]:
    """Return the trace of an image in ink on paper, [row, column], 0 to 1."""
    return {
        "type": "heatmap",
        "z": image.astype(np.float32),
        "colorscale": _INK,
        "zmin": 0,
        "zmax": 1,
        "showscale": False,
        "hoverinfo": "skip",
    }


def add_number(figure: Sheet, text: str, *, box: dict[str, float]) -> None:
    """Write a number in the middle of a patch, legible on ink and on paper."""
    figure.add_annotation(
        text=text,
        x=(box["x0"] + box["x1"]) / 2,
        y=(box["y0"] + box["y1"]) / 2,
        bgcolor="rgba(255, 255, 255, 0.8)",
        font={"color": "#1b2430"},
    )


def box_of(index: int, *, across: int, size: int) -> dict[str, float]:
    """Return the corners of a patch of ``size`` pixels in an image that is ``across`` patches wide."""
    row, column = divmod(index, across)
    x, y = column * size - 0.5, row * size - 0.5
    return {"x0": x, "x1": x + size, "y0": y, "y1": y + size}


def add_hover(figure: Sheet, names: Sequence[str], *, values: np.ndarray, size: int, hover: str) -> None:
    """Let each patch show its name and its value under the pointer."""
    across = round(len(names) ** 0.5)
    boxes = [box_of(index, across=across, size=size) for index in range(len(names))]
    figure.scatter(
        x=[(box["x0"] + box["x1"]) / 2 for box in boxes],
        y=[(box["y0"] + box["y1"]) / 2 for box in boxes],
        mode="markers",
        marker={"opacity": 0, "size": 40},
        text=[style.escape(name) for name in names],
        customdata=values,
        hovertemplate=hover,
    )


def square(figure: Sheet, shape: tuple[int, ...], *, height: int) -> go.Figure:
    """Hide the axes, give pixels equal sides, and draw the figure."""
    style.finish(figure, height=height, top=8)
    bare: dict[str, Any] = {"visible": False, "fixedrange": True, "constrain": "domain"}
    figure.update_xaxes(**bare, range=[-0.6, shape[1] - 0.4])
    figure.update_yaxes(**bare, range=[shape[0] - 0.4, -0.6], scaleanchor="x")
    figure.update_layout(showlegend=False)
    return figure.drawn()
