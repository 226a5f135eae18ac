"""One step of decoding, from logits to the distribution that is sampled."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import plotly.graph_objects as go

from charts.toolkit import parts, style
from charts.toolkit.checks import as_array, as_probabilities, require_columns
from charts.toolkit.sheet import Sheet, place_side_by_side
from charts.toolkit.words import localize, say

if TYPE_CHECKING:
    import pandas as pd

_COLUMNS = ("piece", "logit", "scaled", "probability", "kept", "final", "own", "chosen")


def reshaping(candidates: pd.DataFrame, *, temperature: float, rule: str, given: bool = False) -> go.Figure:
    """Draw the steps from logits to the sampling distribution, the same candidates in four aligned panels.

    ``candidates``: columns ``piece``, ``logit``, ``scaled`` (logit ÷ temperature), ``probability`` (softmax of
    ``scaled`` over the whole vocabulary), ``kept`` (bool: survives top-k/top-p), ``final`` (probability after cutting
    and dividing by what is left), ``own`` (the model's own probability, drawn as an outline around ``final``: before
    and after) and ``chosen``. ``rule`` names the cut ("top-k 50, top-p 0.9"). ``given``: the token was given, not
    chosen by the model; the predicted one, the first candidate, then has the colour of a choice.
    """
    require_columns(candidates, name="candidates", columns=_COLUMNS)
    chosen, cut = np.asarray(candidates["chosen"], dtype=bool), ~np.asarray(candidates["kept"], dtype=bool)
    predicted, colour = given & (np.arange(len(chosen)) == 0), style.NEUTRAL if given else style.CHOSEN
    colours = np.where(predicted, style.CHOSEN, np.where(chosen, colour, style.BAR)).tolist()
    divided = f"÷ {style.three_digits(float(temperature))}"
    panels = (  # column, name, title of the axis, end of the axis of a probability
        ("logit", say("names.logit"), say("names.logit"), None),
        ("scaled", divided, say("decoding.logit_over_temperature"), None),
        ("probability", say("decoding.softmax"), say("names.probability"), 1.6),
        ("final", say("names.final"), say("decoding.sampling_probability"), 1.75),
    )
    # distinguishable even in a figure 84 mm wide
    figure = place_side_by_side([name for _, name, *_ in panels], spacing=0.06, widths=(1, 1, 1.15, 1.75))
    for col, (column, _name, title, end) in enumerate(panels, start=1):
        values = (as_probabilities if end else as_array)(candidates[column], name=column, axes=("candidate",))
        hover = style.lines("%{y}", localize(column))
        figure.add_trace(parts.bar_rows(values, hover=hover, colours=colours, cut=cut if end else None), col=col)
        limits = [0, end] if end else parts.bar_range(values, share=0.42)
        figure.update_xaxes(title_text=title, range=limits, tickvals=[0, 0.5, 1] if end else None, col=col)
    figure.traces[-1]["textposition"] = "none"
    own = as_probabilities(candidates["own"], name="own", axes=("candidate",))
    _draw_before(figure, own, final=values, cut=cut)
    coloured, excluded = chosen | predicted, say("decoding.excluded", rule=style.escape(rule))
    for occurs, name, hue, shape in (
        ((~coloured & ~cut).any(), say("names.candidate"), style.BAR, ""),
        (predicted.any(), say("decoding.predicted"), style.CHOSEN, ""),
        ((chosen & ~predicted).any(), localize("given" if given else "chosen"), colour, ""),
        (cut.any(), excluded, style.MASKED, "/"),
    ):
        if occurs and (coloured.any() or cut.any()):
            figure.bar(x=[None], y=[None], name=name, marker={"color": hue, "pattern": {"shape": shape}})
    style.finish(figure, height=style.rows_height(len(candidates), around=120), top=64)
    figure.update_layout(barmode="overlay", legend={"y": 1 + 26 / max(100, figure.layout["height"] - 120)})
    figure.update_xaxes(nticks=3)
    figure.update_yaxes(**style.label_rows([str(piece) for piece in candidates["piece"]], title=""))
    figure.update_yaxes(title_text=say("names.candidate"), col=1)
    return figure.drawn()


def _draw_before(figure: Sheet, own: np.ndarray, *, final: np.ndarray, cut: np.ndarray) -> None:
    """Draw an outline of each bar's former length, and both numbers after the longer of the two."""
    rows, digits = np.arange(len(own)), style.three_digits
    fills = ["rgba(138,141,147,0.35)" if is_cut else "rgba(0,0,0,0)" for is_cut in cut]
    figure.bar(
        x=own,
        y=rows,
        orientation="h",
        width=0.9,
        name=say("decoding.own_probability"),
        marker={"color": fills, "line": {"color": style.NEUTRAL, "width": 2}},
        hovertemplate=style.hover("%{y}", say("names.before"), style.exact("x")),
        col=4,
    )
    figure.scatter(
        x=np.maximum(own, final) + 0.05,
        y=rows,
        mode="text",
        text=[
            say("decoding.cut_value", value=digits(float(a))) if is_cut else f"{digits(float(a))} → {digits(float(b))}"
            for a, b, is_cut in zip(own, final, cut, strict=True)
        ],
        textposition="middle right",
        textfont={"size": style.TICK_SIZE},
        cliponaxis=False,
        hoverinfo="skip",
        col=4,
    )
