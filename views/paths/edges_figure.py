"""Edges into one head: what one backward pass estimates, against what path patching measures."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from charts.toolkit import style
from charts.toolkit.numbers import number
from charts.toolkit.sheet import Sheet
from charts.toolkit.words import _


def estimated_against_measured(
    measured: np.ndarray, *, estimated: np.ndarray, labels: Sequence[str], height: int = 340
) -> go.Figure:
    """Draw one point per edge; on the line, the estimate equals the measurement.

    ``measured`` and ``estimated`` are shares, [edge]; ``labels`` are the names of the senders.
    """
    if not len(measured) == len(estimated) == len(labels):
        raise ValueError(
            f"{len(measured)} measured, {len(estimated)} estimated, {len(labels)} labels; give equal numbers"
        )
    known = np.isfinite(measured) & np.isfinite(estimated)
    x, y = measured[known], estimated[known]
    ends = [float(min(x.min(initial=0.0), y.min(initial=0.0))), float(max(x.max(initial=0.0), y.max(initial=0.0)))]
    figure = Sheet()
    figure.scatter(
        x=ends,
        y=ends,
        mode="lines",
        name=_("estimate = measurement"),
        line={"color": style.QUIET, "width": 2, "dash": "dot"},
        hoverinfo="skip",
    )
    figure.scatter(
        x=x.tolist(),
        y=y.tolist(),
        mode="markers",
        name=_("one edge"),
        marker={"size": 9, "color": style.BAR, "opacity": 0.75},
        text=[
            style.lines(
                f"<b>{style.escape(label)}</b>",
                _("measured: {share}", share=number(f"{x_:.9g}")),
                _("estimated: {share}", share=number(f"{y_:.9g}")),
            )
            for label, x_, y_ in zip(np.array(labels, dtype=object)[known], x, y, strict=True)
        ],
        hovertemplate="%{text}<extra></extra>",
    )
    style.finish(figure, height=height, top=40)
    figure.update_layout(hovermode="closest")
    figure.update_xaxes(title_text=_("share restored, measured"), zeroline=True)
    figure.update_yaxes(title_text=_("share restored, estimated"), zeroline=True)
    return figure.drawn()
