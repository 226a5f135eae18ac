"""The pictures of a patient beside those of the healthy one, without a word about its mistake."""

from collections.abc import Sequence

import pandas as pd
import streamlit as st

from charts.canvas.attention_maps import attention_map
from charts.toolkit.style import three_digits
from charts.toolkit.words import _
from transformer.faults.catalogue import HEALTHY, Diagnosis
from transformer.faults.patients import self_attention_in_training
from transformer.faults.signs import signs_of
from transformer.predictions.answer_probabilities import Answer
from transformer.predictions.comparison import word_diff
from transformer.runs.attention_view import AttentionView
from ui.lab.effects import marked
from ui.shell.page import Page
from ui.show.drawings import show_map
from ui.show.figures import show_figure, show_table
from ui.words.texts import as_plain
from views.bugs.patient_runs import WORD, experiment_on, toy_of
from views.bugs.two_courses_figure import two_courses

HEIGHT = 315
WORDS = (WORD, "abcd", "attention")


def pictures(p: Page, diagnosis: Diagnosis) -> None:
    """Maps on one scale, answers, and two curves."""
    (_of_training if diagnosis.in_training else _of_checkpoint)(p, diagnosis)


def _of_checkpoint(p: Page, diagnosis: Diagnosis) -> None:
    text, focus, found = p.text, p.focus, experiment_on(p, diagnosis.fault)
    place = (focus.stack, focus.layer, focus.kind)
    views = [trace.attention(*place) for trace in (found.original, found.changed)]
    _two_maps(p, views, head=focus.head, answers=(found.answer_before, found.answer_after))
    st.markdown(text["about_checkpoint"].format(name=as_plain(p.checkpoint.name)))
    if not found.answer_before.parts:
        st.caption(text["no_blank"])
    signs = [signs_of(trace) for trace in (found.original, found.changed)]
    healthy, patient = signs
    with st.grid(2, min_column_width=400):
        _courses(
            p, healthy.entropy, patient.entropy, at=healthy.attentions, name="entropy-by-layer",
            caption="entropy_caption", title=_("entropy in bits"), across=_("attention of layer"),
        )  # fmt: skip
        _courses(
            p, healthy.size, patient.size, at=healthy.stages, name="stream-by-layer",
            caption="stream_caption", title=_("standard deviation"), across=_("residual stream after layer"),
        )  # fmt: skip


def _of_training(p: Page, diagnosis: Diagnosis) -> None:
    text = p.text
    toys = [toy_of(Diagnosis(HEALTHY, True)), toy_of(diagnosis)]
    courses = [toy.course for toy in toys]
    st.markdown(text["about_training"].format(steps=courses[0][-1].step))
    steps = [moment.step for moment in courses[0]]
    reported, writes = (
        [[getattr(moment, what) for moment in course] for course in courses] for what in ("reported", "writes")
    )
    with st.grid(2, min_column_width=400):
        _courses(
            p, *reported, at=steps, name="loss-reported", caption="loss_caption",
            title=_("loss that the training reports"), across=_("training step"), logarithmic=True,
        )  # fmt: skip
        _courses(
            p, *writes, at=steps, name="words-written-right", caption="writes_caption",
            title=_("share of words written right"), across=_("training step"), share=True,
        )  # fmt: skip
    written = [[toy.learner.written(word) for word in WORDS] for toy in toys]
    table = {text["column_word"]: WORDS, **dict(zip(_names(p), written, strict=True))}
    show_table(pd.DataFrame(table), name="words-written", caption=text["written_caption"])
    shown = [self_attention_in_training(toy.learner, WORD) for toy in toys]
    _two_maps(p, [view for view, _answer in shown], head=0)
    st.caption(text["training_maps"])


def _courses(
    p: Page, healthy: Sequence[float], patient: Sequence[float], *, name: str, caption: str, **what: object
) -> None:
    """One figure of the grid; ``caption``: the name of a text."""
    with st.container():
        figure = two_courses(healthy, patient=patient, names=_names(p), **what)
        show_figure(figure, name=name, caption=p.text[caption])


def _names(p: Page) -> tuple[str, str]:
    return p.text["healthy"], p.text["the_patient"]


def _two_maps(p: Page, views: list[AttentionView], *, head: int, answers: tuple[Answer, ...] = ()) -> None:
    with st.grid(2, min_column_width=330):
        for number, (name, view) in enumerate(zip(_names(p), views, strict=True)):
            with st.container(gap="xsmall"):
                drawn = attention_map(view, head=head, height=HEIGHT).headed(name)
                show_map(drawn, key=f"bug map {number}")
                if answers:
                    _answer(p, answers[0], answers[number], changed=bool(number))


def _answer(p: Page, before: Answer, now: Answer, *, changed: bool) -> None:
    sure = p.text["sure"].format(probability=three_digits(now.probability)) if now.parts else ""
    words = as_plain(" ".join(now.text.split())) or "–"
    if changed and now.text != before.text:
        words = "".join(marked(piece) for piece in word_diff(before.text, now.text) if piece.fate != "removed").strip()
        words = words or as_plain(now.text) or "–"
    st.markdown(f"##### {words}")
    st.caption(" · ".join(filter(None, (p.text["answer"], sure))))
