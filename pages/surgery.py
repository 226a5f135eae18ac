"""Surgery: which heads matter? Every head is removed once; then remove any, and see the output."""

import streamlit as st

from ui.page.page import page
from ui.sections.effects import picture_and_answer, show_answers, show_numbers, show_steps
from views.surgery import edit_list, steering_section
from views.surgery import surgery_sections as sections

with page("surgery", needs=("stack", "kind", "layer", "head")) as p:
    edit_list.keep_fitting(p)
    above = st.container()
    picture, beside = picture_and_answer()
    with beside:
        changes, answers = st.container(), st.container()
        click, number = sections.choose(p)
    with picture:
        measured = sections.importance(p)
        shown = sections.example_head(p, measured, click)
        sections.importance_map(p, measured, click, number)
    edits = edit_list.specs()
    with changes:  # before the run with the edits, which may not be finite: then they can be undone
        if edits or shown is None or p.focus.lesson:
            edit_list.show(p)
    with st.container(border=True):
        sections.more_edits(p)
    sections.roles_and_importance(p, measured)

    is_example = not edits and shown is not None and not p.focus.lesson
    found = sections.run_with(p, (sections.removal(shown),) if is_example else edits)
    with above:
        if is_example or (edits and not p.focus.lesson):
            sections.say_effect(p, found, shown if is_example else None, click)
    with answers:
        if is_example:
            sections.show_example(p, found, shown, click)
        else:
            show_answers(p, found)
        if edits or p.focus.lesson:
            show_numbers(p, found)
    if edits:
        st.subheader(p.text["depth"], anchor=False)
        show_steps(p, found)
        steering_section.compare_with_random(p)
        sections.edited_sentence(p, edits)
    sections.formula_and_code(p, found)
