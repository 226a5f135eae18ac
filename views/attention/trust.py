"""Faithfulness of the map: what the output depends on, token by token, beside the row of the head."""

import numpy as np
import streamlit as st

from charts.figures.aligned_measures import MAX_NUMBERS, NAMES, ROOM, aligned_measures
from charts.toolkit.numbers import number
from charts.toolkit.words import say
from transformer.attribution.attention_trust import (
    Aligned,
    InputAttributions,
    compare_with_attention,
    compare_without_attention,
    input_attributions,
    n_passes,
)
from transformer.predictions.answer_probabilities import prediction_rows
from transformer.predictions.target import QUANTITIES, Target, quantity_of
from ui.page.page import Page
from ui.shell import choice
from ui.show.figures import show_figure
from ui.words.model_terms import embedding_scale
from ui.words.texts import number_text
from views.attention.attention_sections import Shown

_BASELINES = ("mean", "pad", "zero")
_STEPS = (16, 32, 64, 128)
_LARGE_ERROR = 0.05  # as a share of the total change
_FIGURE = "attention-and-answer"


def trust(p: Page, shown: Shown) -> None:
    """Draw the choice of the output and the method's settings, all measures token by token, and the check."""
    p.say("trust_intro")
    row = _answer_row(p, shown)
    if row is None:
        p.say("trust_nothing", icon="info")
        return
    with st.container(horizontal=True, vertical_alignment="bottom"):
        of = p.option("trust_of", QUANTITIES, key="trust_of", help=p.text["trust_of_help"])
        help = p.text["trust_start_help"]
        baseline = p.option("trust_baseline", _baselines(p), key="trust_baseline", help=help)
        steps = choice.buttons(p.text["trust_steps"], _STEPS, default=64, key="trust_steps")
    quantity = p.calc(quantity_of, p.trace, row=row, of=of, name="quantity")
    found = _attributions(p, quantity, baseline, steps)
    if found is None:
        return
    aligned = p.calc(
        compare_with_attention, p.trace, shown.view, found, head=shown.head, query=shown.row,
        name="measures", shows=(".measures",),
    )  # fmt: skip
    _claim(p, shown, aligned, quantity)
    _draw(p, aligned, quantity, name=_FIGURE)
    if len(quantity.read) > 1:
        other = "encoder" if aligned.tokens is not p.trace.source else "decoder"
        p.say(f"trust_other.{other}", answer=quantity.display)
        beside = p.calc(compare_without_attention, found, other, name="other")
        _draw(p, beside, quantity, name=f"{_FIGURE}-other")
    _completeness(p, found, quantity)
    p.say("trust_caution")
    table = p.checkpoint.model.get_submodule(next(iter(quantity.read))).embedding
    p.formula(
        p.text["trust_formula"], "trust_shapes", answer=quantity.display, steps=found.integrated.n_steps,
        tokens=" + ".join(str(len(read)) for read in quantity.read.values()),
        width=next(table.table.parameters()).shape[-1], scale=embedding_scale(table, p.checkpoint.config.d_model),
    )  # fmt: skip


def _baselines(p: Page) -> tuple[str, ...]:
    """Return the baselines that this model has: GPT-2 has no padding token."""
    return tuple(name for name in _BASELINES if name != "pad" or p.checkpoint.special.pad is not None)


def _answer_row(p: Page, shown: Shown) -> int | None:
    """Return the row of the logits: in a decoder the focused one, else the blank that was chosen."""
    if shown.view.stack == "decoder":
        return shown.row
    question = prediction_rows(p.trace)
    if p.checkpoint.config.n_classes or not question.rows:
        return question.rows[0] if question.rows else None
    own = shown.view.stack == question.logits.partition(".")[0] and shown.row in question.rows
    names = {row: number_text(row, p.trace.prediction.labels[row]) for row in question.rows}
    return choice.select(
        p.text["trust_answer"], question.rows, shown.row if own else question.rows[0], key="trust_answer",
        owner=(p.checkpoint.fingerprint, p.trace.prediction.ids, question.rows, shown.row),
        format_func=lambda row: names.get(row, row),
        help=p.text["trust_answer_help"], width=320,
    )  # fmt: skip


def _attributions(p: Page, quantity: Target, baseline: str, steps: int) -> InputAttributions | None:
    return p.calc(
        input_attributions, p.checkpoint, quantity, baseline=baseline, n_steps=steps, name="found", slow=True,
        passes=n_passes(quantity, n_steps=steps), wait="wait.trust",
        shows=(".integrated.total", ".integrated.difference"),
    )  # fmt: skip


def _claim(p: Page, shown: Shown, aligned: Aligned, quantity: Target) -> None:
    """Name the key of largest weight and the token that the output depends on most."""
    labels = [aligned.tokens.labels[at] for at in aligned.positions]
    looked, missed = aligned["head"].values, aligned["leave_one_out"].values
    if not labels or np.isnan(missed).all():
        p.say("trust_words_alone")
        return
    most, agreement = int(np.nanargmax(np.abs(missed))), aligned["head"].agreement
    is_decoder = shown.view.stack == "decoder"
    p.say(
        "trust_words_predicting" if is_decoder else "trust_words",
        word=shown.view.query.labels[shown.row], looked=labels[int(np.argmax(looked))], share=float(looked.max()),
        answer=quantity.display, missed=labels[most], change=-float(missed[most]),
        unit=p.text["trust_of"][quantity.of],
        agreement=number(f"{agreement:.2f}") if np.isfinite(agreement) else "–",
    )  # fmt: skip


def _draw(p: Page, aligned: Aligned, quantity: Target, *, name: str) -> None:
    if not aligned.positions:
        return
    room = ROOM * len(aligned.positions) if len(aligned.positions) <= MAX_NUMBERS else 0
    figure = aligned_measures(
        aligned,
        answer=say("attention.quoted_token", token=quantity.display),
        unit=p.text["trust_of"][quantity.of],
        names={**NAMES, "head": say("names.numbered_head", head=p.focus.head)},
    )
    caption = p.md("trust_caption") if name == _FIGURE else ""
    show_figure(figure, name=name, caption=caption, alt=p.text["trust_alt"], room=max(room, 250) + 220)


def _completeness(p: Page, found: InputAttributions, quantity: Target) -> None:
    whole = found.integrated
    p.say(
        "complete", total=whole.total, value=whole.value, start=whole.baseline_value, difference=whole.difference,
        error=whole.error, steps=whole.n_steps, slope=found.gradient.total,
    )  # fmt: skip
    moved = sum(float(np.abs(part).sum()) for part in (whole.source, whole.target) if part is not None)
    if abs(whole.error) > _LARGE_ERROR * max(moved, 1e-12):
        st.warning(p.text["complete_large"], icon=":material/warning:")
    if not p.toggle("compare_baselines", key="trust baselines"):
        return
    rows = []
    for baseline in _baselines(p):
        every = _attributions(p, quantity, baseline, whole.n_steps)
        if every is None:
            return
        parts = {stack: every.rows(stack)["integrated_gradients"] for stack in quantity.read}
        stack = max(parts, key=lambda stack: np.abs(parts[stack]).max())
        integrated = every.integrated
        rows.append(
            {
                "baseline": p.text["trust_baseline"][baseline],
                "start": integrated.baseline_value,
                "difference": integrated.difference,
                "total": integrated.total,
                "error": integrated.error,
                "strongest": quantity.read[stack].labels[int(np.abs(parts[stack]).argmax())],
            }
        )
    p.table(rows, name="baselines", caption=p.md("compare_caption"))
