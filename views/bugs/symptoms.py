"""Symptoms of a case compared with the original, without naming the bug: outputs, one head, curves."""

from collections.abc import Sequence

import pandas as pd
import streamlit as st

from charts.canvas.attention_maps import attention_map, predicted_rows
from charts.toolkit.numbers import percent
from charts.toolkit.style import three_digits
from charts.toolkit.words import _
from transformer.predictions.comparison import word_diff
from ui.lab.effects import mark
from ui.shell.page import Page
from ui.shell.presentation.presenter import is_presenting
from ui.show.drawings import show_map
from ui.show.figures import show_figure, show_table
from ui.words.texts import as_plain
from views.bugs.bugs_view_model import WORDS, CheckpointCase, TrainingCase
from views.bugs.two_curves_figure import two_curves

HEIGHT, PRESENTED_HEIGHT = 235, 170
_LONGEST = 80  # characters of an output: a model with a bug may repeat one word endlessly


def show_outputs(p: Page, case: CheckpointCase | TrainingCase) -> None:
    """Draw both outputs side by side, and below them one sentence about what one head does differently."""
    before, after = [_shortened(text) for text in case.outputs]
    words = as_plain(after)
    if after != before and isinstance(case, CheckpointCase):
        words = "".join(mark(piece) for piece in word_diff(before, after) if piece.fate != "removed").strip() or words
    notes = ["", ""]
    if isinstance(case, TrainingCase):
        notes = [p.text["copies"].format(word=WORDS[0])] * 2
    elif case.probabilities:
        notes = [p.text["sure"].format(probability=three_digits(one)) for one in case.probabilities]
    with st.container(border=True, horizontal=True, key="bug outputs", gap="medium"):
        for name, shown, note in zip(_names(p), (as_plain(before), words), notes, strict=True):
            with st.container(gap=None, width="stretch"):
                st.caption(" · ".join(filter(None, (name, note))))
                st.markdown(f"##### {shown or '–'}")
    if isinstance(case, CheckpointCase):
        st.markdown(_symptom(p, case))


def _shortened(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _symptom(p: Page, case: CheckpointCase) -> str:
    stack, kind, layer, head = case.location
    place = {"kind": p.text[f"kind_{stack}_{kind}"], "layer": layer, "head": head}
    if case.shift is not None:
        words = {name: as_plain(label) for name, label in case.shift._asdict().items()}
        return p.text["shift_predicting" if kind == "cross" else "shift_reading"].format(**place, **words)
    if case.share_moved > 0.005:
        return p.text["share_moved"].format(**place, share=percent(case.share_moved))
    return p.text["nothing_moved"].format(**place)


def show_figures(p: Page, case: CheckpointCase | TrainingCase) -> None:
    """Draw the maps of one head on one scale, and two curves."""
    _two_maps(p, case)
    if isinstance(case, TrainingCase):
        _of_training(p, case)
    else:
        _of_checkpoint(p, case)


def _of_checkpoint(p: Page, case: CheckpointCase) -> None:
    text, (original, changed) = p.text, case.signs
    st.markdown(text["about_checkpoint"].format(name=as_plain(p.checkpoint.name)))
    if case.probabilities is None:
        st.caption(text["no_blank"])
    with st.grid(2, min_column_width=400):
        _curves(
            p, original.entropy, changed.entropy, at=original.attentions, name="entropy-by-layer",
            caption="entropy_caption", title=_("entropy in bits"), across=_("attention of layer"),
        )  # fmt: skip
        _curves(
            p, original.size, changed.size, at=original.stages, name="stream-by-layer",
            caption="stream_caption", title=_("standard deviation"), across=_("residual stream after layer"),
        )  # fmt: skip


def _of_training(p: Page, case: TrainingCase) -> None:
    text = p.text
    st.caption(text["training_maps"])
    st.markdown(text["about_training"].format(steps=case.last.step))
    with st.grid(2, min_column_width=400):
        _curves(
            p, *case.curves("reported"), at=case.steps, name="loss-reported", caption="loss_caption",
            title=_("reported training loss"), across=_("training step"), logarithmic=True,
        )  # fmt: skip
        _curves(
            p, *case.curves("writes"), at=case.steps, name="words-written-right", caption="writes_caption",
            title=_("share of correct words"), across=_("training step"), share=True,
        )  # fmt: skip
    table = {text["column_word"]: WORDS, **dict(zip(_names(p), case.written, strict=True))}
    show_table(pd.DataFrame(table), name="words-written", caption=text["written_caption"])


def _curves(
    p: Page, original: Sequence[float], changed: Sequence[float], *, name: str, caption: str, **what: object
) -> None:
    """Draw one figure of the grid; ``caption`` is the key of its text."""
    with st.container():
        figure = two_curves(original, other=changed, names=_names(p), **what)
        show_figure(figure, name=name, caption=p.text[caption])


def _names(p: Page) -> tuple[str, str]:
    return p.text["healthy"], p.text["this_case"]


def _two_maps(p: Page, case: CheckpointCase | TrainingCase) -> None:
    height = PRESENTED_HEIGHT if is_presenting() else HEIGHT
    # Cross-attention rows are named after the tokens that they predict, as in the sentence above the maps.
    predicted = None
    if isinstance(case, CheckpointCase):
        predicted = predicted_rows(case.experiment.original, case.location.kind)
    with st.grid(2, min_column_width=330):
        for number, (name, view) in enumerate(zip(_names(p), case.views, strict=True)):
            with st.container(gap="xsmall"):
                drawn = attention_map(view, head=case.head, shifted_labels=predicted, height=height).headed(name)
                show_map(drawn, key=f"bug map {number}")
