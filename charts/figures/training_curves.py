"""The curves of a training run over its steps: loss, score on dev, learning rate."""

from __future__ import annotations

from textwrap import wrap
from typing import TYPE_CHECKING

from charts.toolkit.checks import require_columns
from charts.toolkit.style import BAR, CHOSEN, NEUTRAL, TEXT_SIZE
from charts.toolkit.words import localize, say

if TYPE_CHECKING:  # importing them takes a third of a second, and few pages need them
    import altair as alt
    import pandas as pd

_LABELS = 60  # pixels for the axis labels of a curve, whatever their length
TRAIN, DEV = "training batches", "dev split"


def loss_curves(history: pd.DataFrame, *, loss: str = "loss (nats per token)") -> alt.TopLevelMixin:
    """Draw training and dev loss.

    ``history`` has the columns ``step``, ``train_loss``, ``dev_loss`` of history.csv; the dev column is empty between
    evaluations.

    Raises:
        ValueError: If a column is missing.
    """
    import altair as alt
    import pandas as pd

    require_columns(history, name="history", columns=["step", "train_loss", "dev_loss"])
    curves = {localize(TRAIN): "train_loss", localize(DEV): "dev_loss"}
    data = pd.concat(
        pd.DataFrame({"step": history["step"], "value": history[column], "curve": name})
        for name, column in curves.items()
    ).dropna()
    last = history["step"].max()
    colour = alt.Color(
        "curve:N",
        scale=alt.Scale(domain=list(curves), range=[BAR, CHOSEN]),
        legend=alt.Legend(title=None, orient="top", labelFontSize=TEXT_SIZE),
    )
    return _curve(data, title=localize(loss), colour=colour, height=280, last=last)


def score_curve(history: pd.DataFrame, *, score: str) -> alt.TopLevelMixin:
    """Draw the dev score by which the checkpoint was chosen; needs ``step`` and ``dev_score``."""
    require_columns(history, name="history", columns=["step", "dev_score"])
    data = history[["step", "dev_score"]].dropna().rename(columns={"dev_score": "value"})
    last = history["step"].max()
    return _curve(data, title=score, colour=CHOSEN, height=220, points=True, last=last)


def rate_curve(history: pd.DataFrame) -> alt.TopLevelMixin:
    """Draw the learning rate; needs ``step`` and ``learning_rate``."""
    require_columns(history, name="history", columns=["step", "learning_rate"])
    data = history[["step", "learning_rate"]].rename(columns={"learning_rate": "value"})
    last = history["step"].max()
    return _curve(data, title=say("training.learning_rate"), colour=BAR, height=190, last=last)


def repeated_loss_curve(history: pd.DataFrame) -> alt.TopLevelMixin:
    """Draw the loss of random tokens in their second copy; needs ``step`` and ``value``."""
    require_columns(history, name="history", columns=["step", "value"])
    title = say("training.repeated_loss")
    return _curve(history, title=title, colour=CHOSEN, height=190, last=history["step"].max(), points=True)


def _curve(
    data: pd.DataFrame,
    *,
    title: str,
    colour: alt.Color | str,
    height: int,
    last: int,
    points: bool = False,
) -> alt.TopLevelMixin:
    """Draw a line from step 0 to ``last``, and a ruler that follows the pointer to the nearest step.

    The curves of one run share their horizontal scale.
    """
    import altair as alt

    ruler = alt.selection_point(on="pointerover", nearest=True, encodings=["x"], clear="pointerout")
    first = "datum.value === 0 ? '0' : datum.label"  # "0" instead of "0k"
    x_axis = alt.Axis(format="~s", labelExpr=first, labelFontSize=TEXT_SIZE, titleFontSize=TEXT_SIZE)
    x = alt.X(
        "step:Q", title=say("names.training_step"), axis=x_axis, scale=alt.Scale(domain=[0, int(last)], nice=False)
    )
    y_axis = alt.Axis(labelFontSize=TEXT_SIZE, titleFontSize=TEXT_SIZE, tickCount=5, minExtent=_LABELS)
    lines = wrap(title, height // 11)  # characters; a title longer than the axis would be cut off
    y = alt.Y("value:Q", title=lines if len(lines) > 1 else title, scale=alt.Scale(zero=False), axis=y_axis)
    tooltip = [
        *([alt.Tooltip("curve:N", title=say("training.curve"))] if "curve" in data else []),
        alt.Tooltip("step:Q", title=say("names.training_step"), format=","),
        alt.Tooltip("value:Q", title=title, format=".6~g"),
    ]
    line = (
        alt.Chart(data)
        .mark_line(strokeWidth=2.5, point=points)
        .encode(x=x, y=y, color=alt.value(colour) if isinstance(colour, str) else colour)
    )
    shown = alt.condition(ruler, alt.value(0.9), alt.value(0), empty=False)
    read = alt.Chart(data).mark_rule(color=NEUTRAL).encode(x=x, tooltip=tooltip, opacity=shown).add_params(ruler)
    return alt.layer(line, read).properties(height=height)
