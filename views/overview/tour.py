"""The way in for somebody who sees the app for the first time: a route of a few stops over the live pages."""

import streamlit as st

from ui.compute.loading import checkpoint_names
from ui.shell.guidance.guesses import forget_guesses
from ui.shell.guidance.lesson_bar import open_step
from ui.shell.guidance.routes import find_course
from ui.shell.page import Page
from ui.words.texts import language

TOUR = "tour"  # in lessons/routes.toml


def offer_tour(p: Page) -> None:
    """The button that starts it, where the checkpoints are there that it is about, and while no lesson runs."""
    tour = find_course(TOUR, language())
    if tour is None or p.focus.lesson or {step.focus["checkpoint"] for step in tour.steps} - {*checkpoint_names()}:
        return
    label = p.text["tour"].format(minutes=tour.minutes)
    if st.button(label, type="primary", icon=":material/tour:", help=tour.aim, key="take the tour"):
        forget_guesses(TOUR)
        open_step(tour, 1)
