"""The distance between the residual streams of two runs, by layer and word."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from charts.toolkit import parts, style
from charts.toolkit.checks import as_array, require_same_length
from charts.toolkit.numbers import number
from charts.toolkit.sheet import Sheet
from charts.toolkit.words import localize, say

_FEW = 16  # words whose cells have room for numbers


def stream_distance(cosine: Any, *, steps: Sequence[str], labels: Sequence[str], equal: Sequence[bool]) -> go.Figure:
    """Draw 1 − cosine of the residual streams of corresponding tokens, step × token, the last step on top.

    The scale ends at the largest distance of words that are equal in both runs; words that replace each other differ
    from the start and are grey.

    Args:
        cosine: [step, token]; dark = the same direction (0), bright = different.
        steps: Names of the steps.
        labels: Names of the tokens.
        equal: Whether each token is equal in both runs.
    """
    sizes = {"step": len(steps), "token": len(labels)}
    values = as_array(cosine, name="cosine", axes=("step", "token"), sizes=sizes)
    if np.abs(values).max() > 1 + 1e-4:
        raise ValueError(f"cosine holds {style.three_digits(np.abs(values).max())}; a cosine lies in −1…1")
    require_same_length("equal", equal, expected=len(labels), of="labels")
    same, hover = np.asarray(equal, dtype=bool), style.lines("%{x}, %{y}", say("compare.cosine_distance"))
    # Two equal vectors may give a cosine of 1 − 10⁻¹⁶.
    distance = np.clip(1 - np.asarray(cosine, dtype=np.float64), 0, 2)
    distance = np.where(distance < 1e-9, 0, distance).astype(np.float32)
    coloured = np.where(same, distance, np.nan).astype(np.float32)
    limit = (float(np.nanmax(coloured)) if same.any() else 0.0) or 1.0
    bar = style.colour_bar(say("compare.cosine_distance_cut", limit=style.three_digits(limit)))
    trace = parts.heatmap(coloured, hover=hover, bar=bar, maximum=limit, xgap=2, ygap=2)
    figure = Sheet(trace)
    rounded = [[number(f"{value:.2g}") for value in row] for row in distance]
    if len(labels) <= _FEW:
        figure.add_trace(parts.cell_texts(trace, texts=rounded))
    if grey := [(step, token) for step in range(len(steps)) for token in np.flatnonzero(~same).tolist()]:
        figure.scatter(
            x=[token for _, token in grey],
            y=[step for step, _ in grey],
            mode="text",
            text=[rounded[step][token] for step, token in grey],
            textfont={"size": style.TICK_SIZE, "color": style.NEUTRAL},
            customdata=[float(distance[place]) for place in grey],
            hovertemplate=style.hover(hover, style.exact("customdata")),
        )
    style.finish(figure, height=36 * len(steps) + 150, top=64)
    rows = style.label_axis([localize(step) for step in steps], title=say("compare.residual_stream_after"))
    figure.update_yaxes(**{**rows, "autotickangles": [0]})
    figure.update_xaxes(**style.label_axis(labels, title=say("compare.shared_token")))
    return figure.drawn()
