"""Curves of a training run: a finished one, or one that is still running and is redrawn as it goes.

The data of a run in progress have a fixed name and the specification of the chart does not change, so that browsers
move the lines instead of building the chart again. For the same reason its axes have their final length from the first
step.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import numpy as np

from charts.toolkit.checks import as_array, as_probabilities, require_columns, require_index
from charts.toolkit.style import BAR, CATEGORICAL, CHOSEN, NEUTRAL, TEXT_SIZE
from charts.toolkit.words import localize, say

if TYPE_CHECKING:  # importing them takes a third of a second, and few pages need them
    import altair as alt
    import pandas as pd

_LABELS = 60  # pixels for the axis labels of a curve, whatever their length
_LIVE_LABELS = 44  # the same for a running training
TRAIN, DEV = "training batches", "dev split"
_DATA = "curves"
_LOWEST = 1e-3  # the loss axis of a running training extends at least down to this value
_HIGHEST = 5.0
_TEXT: dict[str, Any] = {"labelFontSize": TEXT_SIZE, "titleFontSize": TEXT_SIZE}


def loss_curves(history: pd.DataFrame, *, loss: str = "loss (nats per token)") -> alt.TopLevelMixin:
    """Draw training and dev loss.

    ``history`` has the columns ``step``, ``train_loss``, ``dev_loss`` of history.csv; the dev column is empty between
    evaluations.

    Raises:
        ValueError: If a column is missing.
    """
    import pandas as pd

    require_columns(history, name="history", columns=["step", "train_loss", "dev_loss"])
    curves = {localize(TRAIN): "train_loss", localize(DEV): "dev_loss"}
    data = pd.concat(
        pd.DataFrame({"step": history["step"], "value": history[column], "curve": name})
        for name, column in curves.items()
    ).dropna()
    colour = _coloured(list(curves), [BAR, CHOSEN])
    return _curve(data, title=localize(loss), colour=colour, height=280, last=history["step"].max())


def score_curve(history: pd.DataFrame, *, score: str) -> alt.TopLevelMixin:
    """Draw the dev score by which the checkpoint was chosen; needs ``step`` and ``dev_score``."""
    return _one_curve(history, "dev_score", title=score, colour=CHOSEN, height=220, points=True)


def rate_curve(history: pd.DataFrame) -> alt.TopLevelMixin:
    """Draw the learning rate; needs ``step`` and ``learning_rate``."""
    return _one_curve(history, "learning_rate", title=say("training.learning_rate"), colour=BAR)


def repeated_loss_curve(history: pd.DataFrame) -> alt.TopLevelMixin:
    """Draw the loss on the second copy of repeated random tokens; needs ``step`` and ``value``."""
    return _one_curve(history, "value", title=say("training.repeated_loss"), colour=CHOSEN, points=True)


def live_loss(loss: Any, *, steps: Sequence[int], last_step: int, at: int | None = None) -> alt.TopLevelMixin:
    """Draw the loss of a run in progress on a logarithmic axis, over the steps 0 … ``last_step``.

    Args:
        loss: Losses above 0, [step].
        steps: The number of the step of each entry.
        last_step: End of the axis.
        at: Index of the marked entry; by default the last.

    Raises:
        ValueError: If the lengths differ, or a loss is below 0.
    """
    losses = as_array(loss, name="loss", axes=("step",), sizes={"step": len(steps)}, signed=False)
    losses = np.maximum(losses, np.finfo(np.float32).tiny)  # log 0 is undefined
    low = min(_LOWEST, 10.0 ** math.floor(math.log10(float(losses.min()))))
    scale = {"type": "log", "domain": [low, max(_HIGHEST, float(losses.max()))], "nice": False}
    decades = [10.0**power for power in range(round(math.log10(low)), 1)]
    # The shares below it have the same steps, and name them.
    return _live(
        {say("names.loss"): losses}, [BAR], steps, last_step, at,
        title="loss", across=None, scale=scale, ticks=decades, height=150,
    )  # fmt: skip


def live_shares(
    shares: Mapping[str, Any], *, steps: Sequence[int], last_step: int, at: int | None = None
) -> alt.TopLevelMixin:
    """Draw shares from 0 to 1, name → [step], over the steps; arguments as in ``live_loss``."""
    sizes = {"step": len(steps)}
    curves = {name: as_probabilities(values, name=name, axes=("step",), sizes=sizes) for name, values in shares.items()}
    return _live(
        curves, [CHOSEN, CATEGORICAL[2], *CATEGORICAL], steps, last_step, at,
        title="share", across=say("names.training_step"), scale={"domain": [0, 1], "nice": False}, ticks=[0, 0.5, 1],
        height=205,
    )  # fmt: skip


def _one_curve(history: pd.DataFrame, column: str, *, height: int = 190, **more: Any) -> alt.TopLevelMixin:
    require_columns(history, name="history", columns=["step", column])
    data = history[["step", column]].dropna().rename(columns={column: "value"})
    return _curve(data, height=height, last=history["step"].max(), **more)


def _curve(
    data: pd.DataFrame, *, title: str, colour: alt.Color | str, height: int, last: int, points: bool = False
) -> alt.TopLevelMixin:
    """Draw a line from step 0 to ``last``, and a ruler that follows the pointer to the nearest step.

    The curves of one run share their horizontal scale.
    """
    import altair as alt

    ruler = alt.selection_point(on="pointerover", nearest=True, encodings=["x"], clear="pointerout")
    first = "datum.value === 0 ? '0' : datum.label"  # "0" instead of "0k"
    x_axis = alt.Axis(format="~s", labelExpr=first, **_TEXT)
    x = alt.X(
        "step:Q", title=say("names.training_step"), axis=x_axis, scale=alt.Scale(domain=[0, int(last)], nice=False)
    )
    y_axis = alt.Axis(tickCount=5, minExtent=_LABELS, **_TEXT)
    lines = wrap(title, height // 11)  # characters; a title longer than the axis would be cut off
    y = alt.Y("value:Q", title=lines if len(lines) > 1 else title, scale=alt.Scale(zero=False), axis=y_axis)
    line = (
        alt.Chart(data)
        .mark_line(strokeWidth=2.5, point=points)
        .encode(x=x, y=y, color=alt.value(colour) if isinstance(colour, str) else colour)
    )
    shown = alt.condition(ruler, alt.value(0.9), alt.value(0), empty=False)
    tooltip = _tooltip(title, has_names="curve" in data)
    read = alt.Chart(data).mark_rule(color=NEUTRAL).encode(x=x, tooltip=tooltip, opacity=shown).add_params(ruler)
    return alt.layer(line, read).properties(height=height)


def _live(
    curves: Mapping[str, np.ndarray],
    colours: Sequence[str],
    steps: Sequence[int],
    last_step: int,
    at: int | None,
    *,
    title: str,
    across: str | None,
    scale: Mapping[str, Any],
    ticks: Sequence[float],
    height: int,
) -> alt.TopLevelMixin:
    import altair as alt

    marked = len(steps) - 1 if at is None else require_index(at, name="at", size=len(steps))
    x_axis = alt.Axis(format=",d", tickCount=5, **_TEXT)
    y_axis = alt.Axis(format="~g", values=list(ticks), minExtent=_LIVE_LABELS, maxExtent=_LIVE_LABELS, **_TEXT)
    lines = alt.Chart().encode(
        x=alt.X("step:Q", title=across, scale=alt.Scale(domain=[0, last_step], nice=False), axis=x_axis),
        y=alt.Y("value:Q", title=localize(title), scale=alt.Scale(**scale), axis=y_axis),
        color=_coloured(list(curves), colours[: len(curves)]),
        tooltip=_tooltip(localize(title), has_names=True),
    )
    chart = alt.layer(
        lines.mark_line(strokeWidth=3),
        lines.mark_point(filled=True, size=130, opacity=1).transform_filter("datum.marked"),
        data=alt.NamedData(name=_DATA),
    ).properties(height=height)
    rows = [
        {"step": int(step), "value": float(value), "curve": name, "marked": index == marked}
        for name, values in curves.items()
        for index, (step, value) in enumerate(zip(steps, values, strict=True))
    ]
    chart.datasets = {_DATA: rows}
    return chart


def _coloured(names: Sequence[str], colours: Sequence[str]) -> alt.Color:
    """Return one colour per curve, with a legend if there are several."""
    import altair as alt

    legend = alt.Legend(title=None, orient="top", labelFontSize=TEXT_SIZE, labelLimit=0) if len(names) > 1 else None
    return alt.Color("curve:N", scale=alt.Scale(domain=list(names), range=list(colours)), legend=legend)


def _tooltip(title: str, *, has_names: bool) -> list[alt.Tooltip]:
    import altair as alt

    named = [alt.Tooltip("curve:N", title=say("training.curve"))] if has_names else []
    step = alt.Tooltip("step:Q", title=say("names.training_step"), format=",")
    return [*named, step, alt.Tooltip("value:Q", title=title, format=".6~g")]
