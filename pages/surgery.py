"""Surgery: which heads matter? Every head is removed once; then remove any, and see the output."""

from functools import partial

import streamlit as st

from transformer.runs.head_places import Head
from ui.lab.effects import picture_and_answer, show_answers, show_consequence, show_numbers, show_steps
from ui.lab.experiments import experiment_with
from ui.page.living_picture import edited_picture
from ui.page.page import page
from ui.shell import choice
from views.surgery import edit_list
from views.surgery.example import at_example, example_of, keep_wanted, show_example, show_numbers_of_example
from views.surgery.operations import choose, formula_and_code, importance, importance_map, measure, more_edits
from views.surgery.roles_and_importance import roles_and_importance
from views.surgery.steering_section import compare_with_random
from views.surgery.surgery_view_model import surgery_view_model

with page("surgery") as p:
    text, focus = p.text, p.focus
    keep_wanted(p)
    edit_list.say_what_was_dropped(edit_list.keep_fitting(p.checkpoint.config), text)
    above = st.container()
    picture, beside = picture_and_answer()
    with beside:
        changes = st.container()
        answers = st.container()
        settings = st.container()
    with settings:
        choices = choose(p)
    location = Head(focus.stack, focus.kind, focus.layer, focus.head)
    known, selected = importance(p), location if choices.click == "focus" else None
    example = None
    if not choices.edits and known.complete and not focus.lesson:
        with above:
            example = example_of(p, known, selected)
            show_example(p, example)
    if not example:
        with changes:  # before the run with the edits, which may not be finite: then they can be undone
            edit_list.show(text)
    marked = example.heads if example else tuple(filter(None, (location if focus.lesson else selected,)))
    shown = surgery_view_model(
        p.trace, location, choices, importance=known, marked=marked, experiment_with=partial(experiment_with, p.run)
    )

    with picture:
        importance_map(p, shown)
        measuring = st.container()
    with st.container(border=True):
        more_edits(at_example(p, click=choices.click))
    roles_and_importance(p, known)

    # The controls of the edits are drawn by now: the page ends here if their run is not finite.
    with answers:
        if example:
            show_numbers_of_example(p, example)
        else:
            if choices.edits and not focus.lesson:
                with above:
                    show_consequence(p, shown.found, edit_list.cause(text))
            show_answers(p, shown.found)
            if choices.edits or focus.lesson:
                show_numbers(p, shown.found)
    if choices.edits:
        st.subheader(text["depth"], anchor=False)
        show_steps(p, shown.found)
        compare_with_random(p)
        with choice.collapsible(text["picture"], icon=":material/movie:", key="edited_picture") as opened:
            if opened.open:
                edited_picture(p, choices.edits)
                st.caption(text["picture_hint"])
    formula_and_code(p, shown)
    with measuring:
        measure(p, shown.importance)
