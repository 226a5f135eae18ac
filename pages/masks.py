"""Masks: what if a token may attend to later ones, or to padding? An editor on the map."""

import streamlit as st

from transformer.errors import NotFiniteError
from ui.page.page import page
from ui.sections.effects import picture_and_answer, show_answers, show_numbers, show_steps
from views.masks import masks_sections as sections

VIEWS = ("difference", "steps", "padding")

with page("masks", needs=("stack", "kind", "layer", "head")) as p:
    own = p.trace.attention(p.focus.stack, p.focus.layer, p.focus.kind)
    above = st.container()
    choices = sections.choose(p, own)
    picture, beside = picture_and_answer()
    with beside:
        answers = st.container()
        sections.take_back(p, choices)

    try:
        found = sections.run_under(p, choices, own)
    except NotFiniteError:  # the page shows the error and ends, while the controls of the mask stay
        with picture:
            sections.draw_editor(p, own, choices.without_run(own, p.checkpoint), choices)
            p.say("without_run", small=True)
        raise
    now = found.changed.attention(p.focus.stack, p.focus.layer, p.focus.kind)
    with above:
        if not p.focus.lesson:
            sections.say_effect(p, found, own, choices)
    with picture:
        sections.draw_editor(p, own, now, choices, of_earlier_output=sections.is_of_earlier_output(p, found))
    with answers:
        show_answers(p, found)
        show_numbers(p, found)
    with beside:
        sections.notes(p, now, choices)

    view = p.option("view", VIEWS, key="masks view")
    if view == "difference":
        sections.difference(p, own, now)
    elif view == "steps":
        show_steps(p, found)
    else:
        sections.padding_sandbox(p)
    sections.formula_and_code(p, now)
