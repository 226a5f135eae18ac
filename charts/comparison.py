"""Two runs side by side: at which layer, and in which words, they come apart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from charts import parts, style
from charts.checks import as_array
from charts.sheet import Sheet


def stream_distance(cosine: Any, *, steps: Sequence[str], labels: Sequence[str]) -> go.Figure:
    """1 − cosine of the residual streams of corresponding tokens, step × token, the last step on top.

    ``cosine``: [step, token]; dark = the same direction (0), bright = apart (1 = no direction in common; the scale
    goes on to 2, the opposite direction, only where a value does).
    """
    sizes = {"step": len(steps), "token": len(labels)}
    values = as_array(cosine, name="cosine", axes=("step", "token"), sizes=sizes)
    if np.abs(values).max() > 1 + 1e-4:
        raise ValueError(f"cosine holds {style.three_digits(np.abs(values).max())}; a cosine lies in −1…1")
    # Two equal vectors may give a cosine of 1 − 10⁻¹⁶.
    distance = np.clip(1 - np.asarray(cosine, dtype=np.float64), 0, 2)
    distance = np.where(distance < 1e-9, 0, distance).astype(np.float32)
    trace = parts.heatmap(
        distance,
        hover="%{x}, %{y}<br>1 − cosine",
        bar=style.colour_bar("1 − cosine: 0 = same direction"),
        maximum=1.0 if distance.max() <= 1 else 2.0,
        xgap=2,
        ygap=2,
    )
    figure = Sheet(trace)
    if len(labels) <= 16:
        rounded = [[style.three_digits(float(f"{value:.2f}")) for value in row] for row in distance]
        figure.add_trace(parts.cell_texts(trace, texts=rounded))
    style.finish(figure, height=36 * len(steps) + 150, top=64)
    figure.update_yaxes(**{**style.label_axis(steps, title="stream after"), "autotickangles": [0]})
    figure.update_xaxes(**style.label_axis(labels, title="token of both sentences (A / B where they differ)"))
    return figure.drawn()
