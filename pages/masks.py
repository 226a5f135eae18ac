"""Masks: what if a token may attend to later ones, or to padding? An editor on the map."""

import streamlit as st

from transformer.errors import NotFiniteError
from transformer.runs.head_places import Head
from ui.lab.effects import picture_and_answer, show_answers, show_numbers, show_steps
from ui.lab.experiments import experiment_with
from ui.page.page import page
from ui.shell.choice import chosen_option
from views.masks import editor
from views.masks.mask_effects import difference, formula_and_code, notes, padding_sandbox, say_effect
from views.masks.masks_view_model import masks_view_model

VIEWS = ("difference", "steps", "padding")

with page("masks", needs=("stack", "kind", "layer", "head")) as p:
    location = Head(p.focus.stack, p.focus.kind, p.focus.layer, p.focus.head)
    own = p.trace.attention(location.stack, location.layer, location.kind)
    above = st.container()
    choices = editor.choose(p, own)
    picture, beside = picture_and_answer()
    with beside:
        answers = st.container()
        editor.take_back(p, choices)

    try:
        found = experiment_with(p.run, choices.specs(own))
    except NotFiniteError:  # the page shows the error and ends, while the controls of the mask stay
        with picture:
            editor.draw_editor(p, own, choices.without_run(own, p.checkpoint), choices)
            st.caption(p.text["without_run"])
        raise
    shown = masks_view_model(p.trace, location, choices, found=found)
    with above:
        if not p.focus.lesson:
            say_effect(p, shown)
    with picture:
        editor.draw_editor(p, shown.own, shown.now, choices, of_earlier_output=shown.rows_are_earlier)
    with answers:
        show_answers(p, found)
        show_numbers(p, found)
    with beside:
        notes(p, shown)

    view = chosen_option(p.text, "view", VIEWS, key="masks view")
    if view == "difference":
        difference(p, shown)
    elif view == "steps":
        show_steps(p, found)
    else:
        padding_sandbox(p)
    formula_and_code(p, shown)
