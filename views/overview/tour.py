"""The tour for a first-time reader: a route of a few stops over the living picture."""

import streamlit as st

from ui.compute.loading import checkpoint_names
from ui.page.page import Page
from ui.shell.focus import opening_focus
from ui.shell.guidance.guesses import score_of
from ui.shell.guidance.lesson_bar import begin_lesson, just_finished
from ui.shell.guidance.lessons import Lesson
from ui.shell.guidance.routes import find_course
from ui.words.texts import language

TOUR = "tour"  # in lessons/routes.toml


def offer_tour(p: Page) -> None:
    """Draw the button that starts the tour, or, after its end, the score and an invitation.

    Neither is drawn during a lesson, or if a checkpoint of the tour is missing.
    """
    tour = find_course(TOUR, language())
    if tour is None or p.focus.lesson or {step.focus["checkpoint"] for step in tour.steps} - {*checkpoint_names()}:
        return
    if just_finished(TOUR):
        _show_score(p, tour)
        return
    label = p.text["tour"].format(minutes=tour.minutes)
    with st.container(width="content"):
        if st.button(label, type="primary", icon=":material/tour:", help=tour.aim, key="take the tour"):
            begin_lesson(tour)


def _show_score(p: Page, tour: Lesson) -> None:
    score = score_of(tour)
    own = p.focus.sentence != opening_focus(p.focus.checkpoint).sentence
    onward = p.text["tour_own" if own else "tour_finished"]
    said = p.text["tour_score"].format(first=score.first, count=score.answered) if score.answered else ""
    # In the rest of the row and in small type, so that the picture below stays where it was.
    with st.container(key="tour score", width="stretch", gap=None):
        st.markdown(f":small[:material/flag: {onward} {said}]")
        if st.button(p.text["tour_again"], type="tertiary", icon=":material/replay:", key="tour again"):
            begin_lesson(tour)
