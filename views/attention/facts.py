"""Numbers of the row and of the head, next to the map, which limit its interpretation."""

import math
from dataclasses import replace

import numpy as np
import streamlit as st

import transformer
from charts.toolkit.style import signed, three_digits, three_digits_alike
from transformer.interventions.head_importance import HeadEffect, head_effect
from transformer.predictions.answer_probabilities import prediction_rows
from transformer.runs.attention_view import AttentionView
from ui.compute.store import store
from ui.page.page import Page
from ui.shell import choice
from ui.words.texts import PageText, as_plain, common, plain_word, token_name
from views.attention.attention_view_model import AttentionViewModel

_MOSTLY = 0.5  # smallest weight for "mostly attends to one token"


def read_aloud(
    text: PageText,
    view: AttentionView,
    *,
    head: int,
    row: int,
    named: int | None = None,
    predicted: str | None = None,
    drawing: str = "map",
) -> str:
    """Return one sentence about one row, as Markdown: the keys with the largest shares.

    Args:
        text: The texts of the page.
        view: The layer, or the drawn head alone.
        head: Index of the head in ``view``.
        row: The row.
        named: The head's number in its layer, if it differs from ``head``.
        predicted: The token that the row predicts, if the row is named after it.
        drawing: What is drawn.
    """
    weights, allowed = view.weights[head, row], view.allowed[row]
    token, label = view.query[row], _word(predicted or view.query.labels[row])
    if view.query.is_class_token(row):
        label = text["class_token"]
    if not allowed.any():
        return text["aloud_nothing"].format(row=label)
    if token.is_padding:
        return text["aloud_padding"].format(row=label)
    order = [int(key) for key in np.argsort(-weights, kind="stable") if allowed[key]]
    key_label = [_key_word(view, key) for key in order[:3]]
    share = three_digits_alike(weights[key] for key in order[:3])
    mostly = weights[order[0]] >= _MOSTLY
    template, then = ("aloud_mostly", "aloud_then") if mostly else ("aloud_spread", "aloud_then_to")
    if drawing in ("values", "rollout"):
        template, then = f"aloud_{drawing}", "aloud_then_from"
    template += "" if predicted is None else "_predicting"
    number = head if named is None else named
    sentence = text[template].format(row=label, head=number, first=key_label[0], share=share[0])
    others = [
        text["aloud_other"].format(label=name, share=part)
        for name, part, key in zip(key_label[1:], share[1:], order[1:3], strict=True)
        if weights[key] >= 0.01
    ]
    return sentence + (text[then].format(others=", ".join(others)) if others else ".")


def say_row(p: Page, shown: AttentionViewModel) -> None:
    """Show the sentence about the row."""
    how = {"named": shown.location.head, "predicted": shown.predicted, "drawing": shown.choices.drawing}
    st.markdown(read_aloud(p.text, shown.drawn, head=0, row=shown.row, **how))


def _key_word(view: AttentionView, key: int) -> str:
    """Return a key as a word of the sentence; a patch without ink is called empty.

    A head may look there all the same.
    """
    ink, label = view.key[key].pixels, view.key.labels[key]
    return common("picture.empty_patch", name=label) if ink and not any(map(bool, ink)) else _word(label)


def _word(label: str) -> str:
    return as_plain(plain_word(label))


def facts(p: Page, shown: AttentionViewModel) -> None:
    """Draw the effect of removing the head and, collapsed except in a lesson, the numbers of the row."""
    if shown.choices.drawing != "rollout":
        _effect(p)
    folded = st.expander(p.text["numbers"], key="attention numbers", expanded=bool(p.focus.lesson))
    with folded, st.grid(4, min_column_width=150, key="attention facts"):
        _numbers(p.text, shown)


def row_numbers(text: PageText, shown: AttentionViewModel) -> None:
    """Draw entropy and the share of special tokens and punctuation."""
    numbers, drawing = shown.numbers, shown.choices.drawing
    of = {"values": "‖α·v‖: ", "rollout": f"{text['show_rollout']}: "}.get(drawing, "")
    if numbers.n_allowed < 2:
        label = token_name(shown.read_label)
        st.caption(text["no_choice" if numbers.n_allowed else "no_choice_at_all"].format(row=label))
    else:
        _metric(
            of + text["entropy"],
            text["entropy_value"].format(value=three_digits(numbers.entropy)),
            text["entropy_of"].format(most=three_digits(math.log2(numbers.n_allowed))),
            text["entropy_help"],
        )
    share = numbers.sink_share
    _metric(
        of + text["sinks"],
        f"< {three_digits(0.001)}" if 0 < share < 0.001 else three_digits(share),
        text["sinks_of"].format(mean=three_digits(numbers.mean_sink_share)),
        text["sinks_help"],
    )


def _numbers(text: PageText, shown: AttentionViewModel) -> None:
    """Draw the numbers of the row, and the key with the largest ‖α·v‖."""
    row_numbers(text, shown)
    if shown.choices.drawing == "rollout":
        st.caption(text["rollout_no_head"])
        return
    name, portion = text["nothing"], "0"
    if (strongest := shown.strongest_value) is not None:
        name, portion = token_name(shown.view.key.labels[strongest[0]]), three_digits(strongest[1])
    _metric(text["strongest"], name, text["strongest_of"].format(share=portion), text["strongest_help"])


def _effect(p: Page) -> None:
    effect = effect_of_head(p)
    if not effect.displays:
        st.caption(p.text["effect_none"])
        return
    answer = as_plain(" ".join(effect.displays[:12]) + (" …" if len(effect.displays) > 12 else ""))
    what = _measured_output(p, effect)
    is_one = len(effect.displays) == 1 and not prediction_rows(p.trace).everywhere
    with st.container(key="attention effect"):  # a lesson covers it
        _metric(
            p.text["effect_of_one"].format(what=as_plain(what)) if is_one else p.text["effect"],
            p.text["effect_value"].format(what=what, factor=three_digits(effect.factor)),
            p.text["effect_of"].format(change=signed(effect.change)),
            p.text["effect_help"].format(answer=answer),
        )


def _measured_output(p: Page, effect: HeadEffect) -> str:
    """Return what is predicted: the class, the only token, or a name of all tokens."""
    if len(effect.displays) == 1:
        return plain_word(effect.displays[0])
    return p.text["effect_what_text" if prediction_rows(p.trace).everywhere else "effect_what"]


def _metric(label: str, value: str, below: str, explanation: str) -> None:
    st.metric(label, value, below, delta_color="off", delta_arrow="off", help=explanation)


def rewrite(p: Page) -> None:
    """Decode again without the focused head on request: up to a hundred forward passes."""
    if not p.checkpoint.config.has_decoder:
        return
    if not choice.toggle(p.text["rewrite"], key="attention rewrite"):
        return
    stack, layer, kind, head = place = _place(p)
    run = replace(p.run, target=None)

    def write() -> str:
        edit = transformer.ablate_head(stack, layer=layer, kind=kind, head=head)
        return transformer.decode(run.checkpoint, run.sentence, edits=[edit], source_pads=run.source_pads).text

    after, before = store.get(run, ("rewritten", *place), write, wait="wait.rewrite"), p.trace.text
    template = "rewrite_same" if after == before else "rewrite_changed"
    st.markdown(p.text[template].format(after=as_plain(after), before=as_plain(before)))


def effect_of_head(p: Page) -> HeadEffect:
    """Return the effect of removing the focused head, computed once for all sessions."""
    *place, head = _place(p)
    return store.get(p.run, ("head effect", *place, head), lambda: head_effect(p.trace, *place, head=head))


def _place(p: Page) -> tuple[str, int, str, int]:
    return p.focus.stack, p.focus.layer, p.focus.kind, p.focus.head
