"""Figures of decoding: one step, an output token by token, texts compared, words aligned or left out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import plotly.graph_objects as go

from charts.toolkit import parts, style
from charts.toolkit.checks import as_array, as_probabilities, require_columns, require_index, require_same_length
from charts.toolkit.numbers import number
from charts.toolkit.patch_drawing import add_hover, add_number, box_of, pixels, square, whole_image
from charts.toolkit.sheet import Sheet, bar, place_side_by_side, scatter
from charts.toolkit.words import localize, say

if TYPE_CHECKING:
    import pandas as pd

    from transformer.text.tokens import TokenSequence

COLUMNS = {
    "logit": "logit",
    "scaled": "scaled",
    "probability": "probability",
    "final": "final",
}  # columns of ``reshaping`` by their names in the hover
_MAX_NUMBERS = 14  # the most columns whose numbers still fit in a cell


def candidate_bars(
    candidates: pd.DataFrame,
    *,
    rest: float | None = None,
    stretch: bool = False,
    axis: str = "next-token probability",
    row: str = "candidate",
    chosen_name: str = "chosen",
    other_name: str = "",
) -> go.Figure:
    """Draw the most likely next tokens with their probabilities, the chosen one in its own colour.

    ``candidates``: columns ``piece`` (as displayed), ``probability`` and optionally ``chosen``, ``typed`` (bool; the
    word of the reader's text, named at its bar) and ``kept`` (bool; not kept = cut off by top-k or top-p, hatched).
    ``rest`` is the probability of all tokens not listed, a last grey
    bar. The axis is fixed to 0…1, or ends at the largest bar with ``stretch``, as its title then says. ``axis`` names
    the event whose probability is shown, ``row`` the meaning of a bar, ``chosen_name`` that of the coloured one, and
    ``other_name`` that of the others, by default ``row``.
    """
    require_columns(candidates, name="candidates", columns=("piece", "probability"))
    values = as_probabilities(candidates["probability"], name="probability", axes=("candidate",))
    chosen, cut = _flags(candidates)
    colours = [style.CHOSEN if is_chosen else style.BAR for is_chosen in chosen]
    labels = [str(piece) for piece in candidates["piece"]]
    if rest is not None:
        values = np.append(values, as_probabilities([rest], name="rest", axes=("candidate",)))
        colours.append(style.MASKED)
        labels.append(say("decoding.all_others"))
        cut = np.append(cut, False)
    bars = parts.bar_rows(values, hover=style.lines("%{y}", say("names.probability")), colours=colours, cut=cut)
    if "typed" in candidates.columns and bars["text"] is not None:
        typed = [*candidates["typed"], *[False] * (rest is not None)]
        bars["text"] = [
            f"{text}  {say('decoding.your_text')}" if is_typed else text
            for text, is_typed in zip(bars["text"], typed, strict=True)
        ]
    figure = Sheet(bars)
    _explain(figure, chosen=chosen, cut=cut, row=other_name or row, chosen_name=chosen_name)
    style.finish(figure, height=style.rows_height(len(labels), around=90), top=36)
    figure.update_layout(margin_r=60)
    end, note = parts.share_axis(values, stretch=stretch)
    figure.update_xaxes(title_text=f"{style.escape(localize(axis))}{note}", range=[0, end])
    figure.update_yaxes(**style.label_rows(labels, title=localize(row)))
    return figure.drawn()


def reshaping(candidates: pd.DataFrame, *, temperature: float, rule: str, given: bool = False) -> go.Figure:
    """Draw the steps from logits to the sampling distribution, the same candidates in four aligned panels.

    ``candidates``: columns ``piece``, ``logit``, ``scaled`` (logit ÷ temperature), ``probability`` (softmax of
    ``scaled`` over the whole vocabulary), ``kept`` (bool: survives top-k/top-p), ``final`` (probability after cutting
    and dividing by what is left), optionally ``own`` (the model's own probability, drawn as an outline around
    ``final``: before and after) and ``chosen``. ``rule`` names the cut ("top-k 50, top-p 0.9"). ``given``: the token
    was given, not chosen by the model; the predicted one, the first candidate, then has the colour of a choice.
    """
    require_columns(candidates, name="candidates", columns=("piece", "logit", "scaled", "probability", "kept", "final"))
    chosen, cut = _flags(candidates)
    predicted = given & (np.arange(len(chosen)) == 0)
    names = [
        say("names.logit"),
        f"÷ {style.three_digits(float(temperature))}",
        say("decoding.softmax"),
        say("names.final"),
    ]
    # distinguishable even in a figure 84 mm wide
    figure = place_side_by_side(names, spacing=0.06, widths=(1, 1, 1.15, 1.75))
    colours = np.where(chosen, style.NEUTRAL if given else style.CHOSEN, style.BAR)
    colours = np.where(predicted, style.CHOSEN, colours).tolist()
    for panel, column in enumerate(("logit", "scaled", "probability", "final"), start=1):
        if panel < 3:
            values = as_array(candidates[column], name=column, axes=("candidate",))
            limits, title = (
                parts.bar_range(values, share=0.42),
                say("names.logit") if panel == 1 else say("decoding.logit_over_temperature"),
            )
        else:
            values = as_probabilities(candidates[column], name=column, axes=("candidate",))
            limits, title = (
                [0, 1.6 if panel == 3 else 1.75],
                say("names.probability") if panel == 3 else say("decoding.sampling_probability"),
            )
        trace = parts.bar_rows(
            values,
            hover=style.lines("%{y}", localize(COLUMNS[column])),
            colours=colours,
            cut=cut if panel >= 3 else None,
        )
        figure.add_trace(trace, col=panel)
        figure.update_xaxes(title_text=title, range=limits, col=panel)
        if panel > 2:
            figure.update_xaxes(tickvals=[0, 0.5, 1], col=panel)
    if "own" in candidates.columns:
        own = as_probabilities(candidates["own"], name="own", axes=("candidate",))
        figure.traces[-1]["textposition"] = "none"
        for trace in _before(own, final=values, cut=cut):
            figure.add_trace(trace, col=4)
        figure.update_layout(barmode="overlay")
    _explain(
        figure,
        chosen=chosen & ~predicted,
        predicted=predicted,
        cut=cut,
        by=say("decoding.excluded", rule=style.escape(rule)),
        chosen_name="given" if given else "chosen",
        chosen_colour=style.NEUTRAL if given else style.CHOSEN,
    )
    style.finish(figure, height=style.rows_height(len(candidates), around=120), top=64)
    figure.update_layout(legend={"y": 1 + 26 / max(100, figure.layout["height"] - 120)})
    figure.update_xaxes(nticks=3)
    figure.update_yaxes(**style.label_rows([str(piece) for piece in candidates["piece"]], title=""))
    figure.update_yaxes(title_text=say("names.candidate"), col=1)
    return figure.drawn()


def _before(own: np.ndarray, *, final: np.ndarray, cut: np.ndarray) -> tuple[dict[str, Any], dict[str, Any]]:
    """Draw an outline of each bar as it was, and both numbers behind the longer of the two."""
    outline = bar(
        x=own,
        y=np.arange(len(own)),
        orientation="h",
        width=0.9,
        name=say("decoding.own_probability"),
        marker={
            "color": ["rgba(138,141,147,0.35)" if is_cut else "rgba(0,0,0,0)" for is_cut in cut],
            "line": {"color": style.NEUTRAL, "width": 2},
        },
        hovertemplate=style.hover("%{y}", say("names.before"), style.exact("x")),
    )
    texts = scatter(
        x=np.maximum(own, final) + 0.05,
        y=np.arange(len(own)),
        mode="text",
        text=[
            say("decoding.cut_value", value=style.three_digits(float(a)))
            if is_cut
            else f"{style.three_digits(float(a))} → {style.three_digits(float(b))}"
            for a, b, is_cut in zip(own, final, cut, strict=True)
        ],
        textposition="middle right",
        textfont={"size": style.TICK_SIZE},
        cliponaxis=False,
        hoverinfo="skip",
    )
    return outline, texts


def answer_confidence(
    probabilities: Any, *, tokens: TokenSequence, runner_up: Any | None = None, current: int | None = None
) -> go.Figure:
    """Draw the probability of each token of the output at the step that produced it, 0…1.

    ``probabilities``: [step], of the chosen token; ``tokens``: those tokens (the prediction); ``runner_up``: [step],
    the probability of the most likely other token; ``current``: the step to draw in colour.
    """
    sizes = {"step": len(tokens)}
    values = as_probabilities(probabilities, name="probabilities", axes=("step",), sizes=sizes)
    if current is not None:
        require_index(current, name="current step", size=len(tokens))
    places = np.arange(len(tokens))
    figure = Sheet()
    figure.bar(
        x=places,
        y=values,
        name=say("decoding.chosen_token"),
        marker={"color": [style.CHOSEN if place == current else style.BAR for place in places]},
        text=style.three_digits_alike(values) if len(tokens) <= 16 else None,
        textposition="outside",
        cliponaxis=False,
        hovertemplate=style.hover(
            say("decoding.step_token", step="%{x:d}", token="%{x}"),
            say("probability", probability=style.exact("y")),
        ),
        showlegend=False,
    )
    if runner_up is not None:
        figure.scatter(
            x=places,
            y=as_probabilities(runner_up, name="runner_up", axes=("step",), sizes=sizes),
            mode="markers",
            name=say("decoding.the_other_token"),
            marker={"symbol": "line-ew", "size": 26, "line": {"width": 3, "color": style.CATEGORICAL[1]}},
            hovertemplate=style.hover(say("decoding.other_token"), say("probability", probability=style.exact("y"))),
        )
    style.finish(figure, height=360, top=64)
    figure.update_layout(legend_y=1.08)  # the legend is above the numbers of bars that reach 1
    figure.update_xaxes(**style.token_axis(tokens, title=say("decoding.output_axis")))
    figure.update_layout(
        uniformtext={"minsize": style.TICK_SIZE - 2, "mode": "hide"}
    )  # hide numbers that would be tiny
    figure.update_yaxes(title_text=say("decoding.step_probability"), range=[0, 1])
    return figure.drawn()


def step_attention(
    weights: Any,
    *,
    tokens: TokenSequence,
    allowed: Any | None = None,
    of: str = "mean of all heads",
    stretch: bool = False,
) -> go.Figure:
    """Draw the attention weights of one decoder row on every source token, 0…1.

    ``weights``: [key]; ``allowed``: [key], False = masked (hatched, no bar); ``of`` names their head or layer.
    The axis is fixed to 0…1, or ends at the largest weight with ``stretch``, as its title then says.
    """
    sizes = {"key": len(tokens)}
    values = as_probabilities(weights, name="weights", axes=("key",), sizes=sizes).copy()
    masked = np.zeros(len(tokens), dtype=bool)
    if allowed is not None:
        masked = as_array(allowed, name="allowed", axes=("key",), sizes=sizes) == 0
    values[masked] = np.nan
    end, note = parts.share_axis(values, stretch=stretch)
    figure = Sheet()
    figure.bar(
        x=np.arange(len(tokens)),
        y=values,
        marker={"color": style.BAR},
        hovertemplate=style.hover(
            say("token_position", token="%{x}", place="%{x:d}"), say("decoding.weight", weight=style.exact("y"))
        ),
    )
    if masked.any():
        figure.add_trace(parts.mask_bars(masked, low=0.0, high=end))
    style.finish(figure, height=300, top=40)
    figure.update_layout(barmode="overlay")
    figure.update_xaxes(**style.token_axis(tokens, title=say("names.key_axis")))
    figure.update_yaxes(title_text=say("decoding.weight_of", of=f"{style.escape(localize(of))}{note}"), range=[0, end])
    return figure.drawn()


def running_log_probability(log_p: Mapping[str, Any], *, tokens: Mapping[str, Sequence[str]]) -> go.Figure:
    """Draw Σ log p after every token, one line per text: higher means more probable up to there.

    ``log_p``: for each name [step], log p of each token under the model; ``tokens``: the tokens as displayed.
    """
    figure = Sheet()
    for index, (name, values) in enumerate(log_p.items()):
        array = as_array(values, name=f"log_p of {name}", axes=("step",))
        require_same_length(f"tokens of {name}", tokens[name], expected=len(array), of="log-probabilities")
        figure.scatter(
            x=np.arange(len(array) + 1),
            y=np.concatenate(([0.0], np.cumsum(array, dtype=np.float64))).astype(np.float32),
            mode="lines+markers",
            name=style.escape(name),
            line={
                "color": (style.BAR, style.CATEGORICAL[2], style.CATEGORICAL[1])[index % 3],
                "width": (7, 4, 3)[index % 3],  # equal texts lie on top of each other; all of them stay visible
                "dash": ("solid", "solid", "dot")[index % 3],
            },
            marker={"size": (10, 8, 7)[index % 3]},
            text=["", *map(style.escape, tokens[name])],
            hovertemplate=style.hover(
                say("decoding.strategy_token", name=style.escape(name), place="%{x}", token="%{text}"),
                say("decoding.total_log_p", value=style.exact("y")),
            ),
        )
    style.finish(figure, height=340, top=48)
    figure.update_xaxes(title_text=say("decoding.tokens_written"), showgrid=False)
    figure.update_yaxes(title_text=say("decoding.log_p_so_far"))
    return figure.drawn()


def alignment_heatmap(
    weights: Any,
    *,
    target: Sequence[str],
    source: Sequence[str],
    best: Any | None = None,
    row: str = "target word",
) -> go.Figure:
    """Draw target word × source word, weights 0…1, with a frame around the largest weight of each row.

    ``weights``: [target word, source word]; ``best``: [target word], the index of the source word to frame; ``row``
    says what a row is.
    """
    sizes = {"target word": len(target), "source word": len(source)}
    values = as_probabilities(weights, name="weights", axes=("target word", "source word"), sizes=sizes)
    trace = parts.heatmap(
        values,
        hover=style.lines("%{y}", say("decoding.looks_at", other="%{x}"), say("names.weight")),
        bar=style.colour_bar(say("names.weight")),
        xgap=1,
        ygap=1,
    )
    alike = [[number(f"{weight:.3f}") for weight in weights_of_row] for weights_of_row in values]
    figure = Sheet(trace, *([parts.cell_texts(trace, texts=alike)] if len(source) <= _MAX_NUMBERS else []))
    style.finish(figure, height=style.rows_height(len(target), around=150), top=64)
    figure.update_xaxes(**style.label_axis(source, title=say("decoding.source_word")))
    figure.update_yaxes(**style.label_rows(target, title=style.escape(localize(row))))
    if best is not None:
        for place, column in enumerate(as_array(best, name="best", axes=("target word",), sizes=sizes).astype(int)):
            box = {"x0": column - 0.48, "x1": column + 0.48, "y0": place - 0.46, "y1": place + 0.46}
            figure.add_shape(type="rect", **box, line={"color": style.CHOSEN, "width": 3})
    return figure.drawn()


def word_contributions(contributions: Any, *, words: Sequence[str], of: str, are_patches: bool = False) -> go.Figure:
    """Draw one bar per word, in the order of the sentence: how much p(``of``) falls without the word.

    ``contributions``: [word], p(of | all words) − p(of | all but this one), −1…1; ``words``: their texts;
    ``are_patches``: they are patches of an image, which are hidden.
    """
    values = as_array(contributions, name="contributions", axes=("word",), sizes={"word": len(words)})
    if np.nanmax(np.abs(values)) > 1 + 1e-4:
        raise ValueError(
            f"contributions hold {style.three_digits(float(values[np.abs(values).argmax()]))}; "
            f"a difference of two probabilities lies in −1…1"
        )
    figure = Sheet()
    hover = style.hover(
        say("decoding.numbered_word", token="%{x}", place="%{x:d}"), say("decoding.contributes", value=style.exact("y"))
    )
    figure.bar(**parts.token_bars(values, hover=hover, colours=parts.signed_colours(values)))
    style.finish(figure, height=340, top=32)
    figure.update_layout(uniformtext=parts.NUMBERS_ALIKE)
    across = say("decoding.hidden_patch") if are_patches else say("decoding.omitted_word")
    lost = "decoding.lost_without_patch" if are_patches else "decoding.lost_without_word"
    figure.update_xaxes(**style.label_axis(words, title=across))
    figure.update_yaxes(title_text=say(lost, name=style.escape(of)), range=parts.bar_range(values))
    return figure.drawn()


def patch_contributions(contributions: Any, *, ink: Any, names: Sequence[str], of: str) -> go.Figure:
    """Draw an image, each patch in the colour of its contribution: how much p(``of``) falls without it.

    ``contributions``: [patch], −1…1; ``ink``: [patch, row, column], 0 to 1; ``names``: of the patches.
    """
    values = as_array(contributions, name="contributions", axes=("patch",), sizes={"patch": len(names)})
    patches = as_array(ink, name="ink", axes=("patch", "row", "column"), sizes={"patch": len(names)})
    across, size, image = round(len(names) ** 0.5), patches.shape[1], whole_image(patches)
    figure = Sheet(pixels(image))
    largest = max(float(np.nanmax(np.abs(values))), 1e-9)
    for index, value in enumerate(values.tolist()):
        box, tint = box_of(index, across=across, size=size), "213, 94, 0" if value > 0 else "0, 114, 178"
        colour = f"rgba({tint}, {0.75 * abs(value) / largest:.3f})"
        figure.add_shape(type="rect", **box, line={"color": style.NEUTRAL, "width": 1}, fillcolor=colour)
        add_number(figure, number(f"{value:+.2f}"), box=box)
    lost = say("decoding.lost_without_patch", name=style.escape(of))
    hover = style.hover("%{text}", lost, style.exact("customdata"))
    add_hover(figure, names, values=values, size=size, hover=hover)
    return square(figure, image.shape, height=340)


def _flags(candidates: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """Return (chosen, cut) as two arrays of bool; absent columns mean none chosen, none cut."""
    nothing = np.zeros(len(candidates), dtype=bool)
    chosen = np.asarray(candidates["chosen"], dtype=bool) if "chosen" in candidates.columns else nothing
    cut = ~np.asarray(candidates["kept"], dtype=bool) if "kept" in candidates.columns else nothing
    return chosen, cut


def _explain(
    figure: Sheet,
    *,
    chosen: np.ndarray,
    cut: np.ndarray,
    by: str = "cut off",
    row: str = "candidate",
    chosen_name: str = "chosen",
    chosen_colour: str = style.CHOSEN,
    predicted: np.ndarray | None = None,
) -> None:
    """Draw a legend of the colours that occur."""
    coloured = chosen if predicted is None else chosen | predicted
    for occurs, name, colour, shape in (
        (bool((~coloured & ~cut[: len(chosen)]).any()), localize(row), style.BAR, ""),
        (predicted is not None and bool(predicted.any()), say("decoding.predicted"), style.CHOSEN, ""),
        (bool(chosen.any()), style.escape(localize(chosen_name)), chosen_colour, ""),
        (bool(cut.any()), localize(by), style.MASKED, "/"),
    ):
        if occurs and (coloured.any() or cut.any()):
            figure.bar(x=[None], y=[None], name=name, marker={"color": colour, "pattern": {"shape": shape}})
