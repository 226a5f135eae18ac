"""Effects of a change to the model: importance, candidates before and after, divergence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import plotly.graph_objects as go

from charts.toolkit import parts, style
from charts.toolkit.checks import as_array, as_probabilities, require_columns, require_same_length
from charts.toolkit.sheet import Sheet
from charts.toolkit.words import localize, say

if TYPE_CHECKING:
    import pandas as pd


def candidates_before_and_after(
    candidates: pd.DataFrame,
    *,
    names: tuple[str, str] = ("before", "after"),
    axis: str = "next-token probability",
) -> go.Figure:
    """Draw two bars per candidate: its probability before a change (grey) and after it.

    ``candidates`` has the columns ``piece`` (as displayed), ``before``, ``after`` and optionally ``chosen`` (bool),
    whose label is marked by a dot. The axis is fixed from 0 to 1.
    """
    require_columns(candidates, name="candidates", columns=("piece", "before", "after"))
    labels = [str(piece) for piece in candidates["piece"]]
    if "chosen" in candidates:
        labels = [
            f"● {piece}" if is_chosen else piece for piece, is_chosen in zip(labels, candidates["chosen"], strict=True)
        ]
    figure = Sheet()
    # Plotly draws the first of a group lowest; the axis is reversed, so it is at the top.
    for column, name, colour in zip(("before", "after"), names, (style.MASKED, style.BAR), strict=True):
        values = as_probabilities(candidates[column], name=column, axes=("candidate",))
        bars = parts.bar_rows(
            values,
            hover=style.lines("%{y}", say("probability", probability=style.escape(localize(name)))),
            colours=colour,
        )
        figure.add_trace({**bars, "name": style.escape(localize(name)), "showlegend": True})
    style.finish(figure, height=44 * len(labels) + 100, top=36)
    figure.update_layout(barmode="group", bargap=0.3, margin_r=60)
    figure.update_xaxes(title_text=style.escape(localize(axis)), range=[0, 1])
    figure.update_yaxes(**style.label_rows(labels, title=say("names.candidate")))
    return figure.drawn()


def divergence_per_token(
    divergence: Any, *, labels: Sequence[str], name: str = "KL(before ‖ after), nats"
) -> go.Figure:
    """Draw one bar per token of the output: how far its distribution has changed.

    ``divergence`` is [token], at least 0; ``labels`` are the tokens.
    """
    values = as_array(divergence, name="divergence", axes=("token",), signed=False)
    require_same_length("labels", labels, expected=len(values), of="tokens")
    figure = Sheet()
    hover = style.hover(say("numbered_token", token="%{x}", place="%{x:d}"), say("bits", value=style.exact("y")))
    figure.bar(**parts.token_bars(values, hover=hover, colours=style.BAR))
    style.finish(figure, height=300, top=32)
    figure.update_layout(uniformtext=parts.NUMBERS_ALIKE)
    figure.update_xaxes(**style.label_axis(labels, title=say("token_output")))
    figure.update_yaxes(title_text=style.escape(localize(name)), range=[0, max(1e-6, float(values.max())) * 1.18])
    return figure.drawn()
