"""Curves of a running training, loss and shares over its steps, redrawn several times per second.

The data have a fixed name and the specification does not change, so that browsers move the lines instead of building
the chart again. For the same reason the axes have their final length from the first step.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from charts.toolkit.checks import as_array, as_probabilities, require_index
from charts.toolkit.style import BAR, CATEGORICAL, CHOSEN, TEXT_SIZE
from charts.toolkit.words import localize, say

if TYPE_CHECKING:  # takes a third of a second to import, and few pages need it
    import altair as alt

_DATA = "curves"
_LOWEST = 1e-3  # the loss axis extends at least down to this value
_HIGHEST = 5.0
_HEIGHTS = {"loss": 150, "share": 205}  # the axes included
_LABELS = 44  # pixels for the numbers of the vertical axis, so that both charts are aligned


def live_loss(loss: Any, *, steps: Sequence[int], last_step: int, at: int | None = None) -> alt.TopLevelMixin:
    """Draw the loss on a logarithmic axis over the steps 0 … ``last_step``.

    Args:
        loss: Losses above 0, [step].
        steps: The number of the step of each entry.
        last_step: End of the axis.
        at: Index of the marked entry; by default the last.

    Raises:
        ValueError: The lengths differ, or a loss is below 0.
    """
    losses = as_array(loss, name="loss", axes=("step",), sizes={"step": len(steps)}, signed=False)
    losses = np.maximum(losses, np.finfo(np.float32).tiny)  # log 0 is undefined
    low = min(_LOWEST, 10.0 ** math.floor(math.log10(float(losses.min()))))
    high = max(_HIGHEST, float(losses.max()))
    scale = {"type": "log", "domain": [low, high], "nice": False}
    decades = [10.0**power for power in range(round(math.log10(low)), 1)]
    return _chart(
        {say("names.loss"): losses},
        colours=[BAR],
        steps=steps,
        last_step=last_step,
        at=at,
        title="loss",
        scale=scale,
        ticks=decades,
    )


def live_shares(
    shares: Mapping[str, Any], *, steps: Sequence[int], last_step: int, at: int | None = None
) -> alt.TopLevelMixin:
    """Draw shares from 0 to 1, name → [step], over the steps; arguments as in ``live_loss``."""
    sizes = {"step": len(steps)}
    curves = {name: as_probabilities(values, name=name, axes=("step",), sizes=sizes) for name, values in shares.items()}
    colours = [CHOSEN, CATEGORICAL[2], *CATEGORICAL][: len(curves)]
    scale = {"domain": [0, 1], "nice": False}
    return _chart(
        curves,
        colours=colours,
        steps=steps,
        last_step=last_step,
        at=at,
        title="share",
        scale=scale,
        ticks=[0, 0.5, 1],
    )


def _chart(
    curves: Mapping[str, np.ndarray],
    *,
    colours: Sequence[str],
    steps: Sequence[int],
    last_step: int,
    at: int | None,
    title: str,
    scale: Mapping[str, Any],
    ticks: Sequence[float],
) -> alt.TopLevelMixin:
    import altair as alt

    marked = len(steps) - 1 if at is None else require_index(at, name="at", size=len(steps))
    rows = [
        {"step": int(step), "value": float(value), "curve": name, "marked": index == marked}
        for name, values in curves.items()
        for index, (step, value) in enumerate(zip(steps, values, strict=True))
    ]
    text: dict[str, Any] = {"labelFontSize": TEXT_SIZE, "titleFontSize": TEXT_SIZE}
    colour = alt.Color(
        "curve:N",
        scale=alt.Scale(domain=list(curves), range=list(colours)),
        legend=alt.Legend(title=None, orient="top", labelFontSize=TEXT_SIZE, labelLimit=0) if len(curves) > 1 else None,
    )
    lines = alt.Chart().encode(
        x=alt.X(
            "step:Q",
            title=None if title == "loss" else say("names.training_step"),  # the shares below it have the same steps
            scale=alt.Scale(domain=[0, last_step], nice=False),
            axis=alt.Axis(format=",d", tickCount=5, **text),
        ),
        y=alt.Y(
            "value:Q",
            title=localize(title),
            scale=alt.Scale(**scale),
            axis=alt.Axis(format="~g", values=list(ticks), minExtent=_LABELS, maxExtent=_LABELS, **text),
        ),
        color=colour,
        tooltip=[
            alt.Tooltip("curve:N", title=say("training.curve")),
            alt.Tooltip("step:Q", title=say("names.training_step"), format=","),
            alt.Tooltip("value:Q", title=localize(title), format=".6~g"),
        ],
    )
    chart = alt.layer(
        lines.mark_line(strokeWidth=3),
        lines.mark_point(filled=True, size=130, opacity=1).transform_filter("datum.marked"),
        data=alt.NamedData(name=_DATA),
    ).properties(height=_HEIGHTS[title])
    chart.datasets = {_DATA: rows}
    return chart
