"""The curves of a training that is going on: loss and shares over its steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from charts import style
from charts.checks import as_array, as_probabilities, require_index
from charts.sheet import scatter, stacked, stacked_height

_HEIGHTS = (180.0, 150.0)
_LOWEST = 1e-3  # the loss axis reaches at least down to here, so that it does not jump while the curve grows


def live_curves(
    loss: Any, *, shares: Mapping[str, Any], steps: Sequence[int], last_step: int, at: int | None = None
) -> go.Figure:
    """Above the loss on a logarithmic axis, below shares between 0 and 1, over the steps 0 … ``last_step``.

    ``loss``: [step], greater than 0; ``shares``: name → [step]; ``steps``: the number of the step of each entry.
    ``at``: index of the entry that is marked. Axes are as long at the first step as at the last.
    """
    sizes = {"step": len(steps)}
    losses = as_array(loss, name="loss", axes=("step",), sizes=sizes, signed=False)
    figure = stacked(["loss (nats per letter)", ""], heights=_HEIGHTS)
    curves = [(1, "loss", losses, style.BAR)]
    for index, (name, values) in enumerate(shares.items()):
        curve = as_probabilities(values, name=name, axes=("step",), sizes=sizes)
        curves.append((2, name, curve, (style.CHOSEN, style.CATEGORICAL[2], *style.CATEGORICAL)[index]))
    for row, name, values, colour in curves:
        figure.add_trace(
            scatter(
                x=np.asarray(steps, dtype=np.int32),
                y=values,
                mode="lines",
                name=style.escape(name),
                line={"color": colour, "width": 3},
                showlegend=row == 2,
                hovertemplate=f"step %{{x}}<br>{style.escape(name)} <b>%{{y:{style.EXACT}}}</b><extra></extra>",
            ),
            row=row,
            col=1,
        )
        end = len(steps) - 1 if at is None else require_index(at, name="at", size=len(steps))
        figure.add_trace(
            scatter(
                x=[int(steps[end])],
                y=[float(values[end])],
                mode="markers",
                marker={"color": colour, "size": 11},
                hoverinfo="skip",
                showlegend=False,
            ),
            row=row,
            col=1,
        )
    style.finish(figure, height=stacked_height(_HEIGHTS, around=84), top=30)
    positive = losses[losses > 0]
    low = min(_LOWEST, float(positive.min(initial=_LOWEST)))
    high = max(5.0, float(losses.max()))
    figure.update_yaxes(row=1, type="log", range=[np.log10(low), np.log10(high)], title_text="loss", dtick=1)
    figure.update_yaxes(row=2, range=[-0.03, 1.03], title_text="share", nticks=5)
    figure.update_xaxes(range=[-0.01 * last_step, 1.01 * last_step])
    figure.update_xaxes(row=2, title_text="step", nticks=8)
    # The legend stands between both panels, above the shares that it names.
    below = _HEIGHTS[1] / stacked_height(_HEIGHTS, around=0)
    figure.update_layout(legend={"y": below, "yanchor": "bottom"})
    if at is not None:
        for row in (1, 2):
            figure.add_vline(x=int(steps[at]), line={"color": style.NEUTRAL, "width": 1.5, "dash": "dot"}, row=row)
    return figure.drawn()
