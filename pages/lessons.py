"""Lessons: their list, an exercise, and printed worksheets."""

import streamlit as st

from ui.classroom.class_address import ask_for_address
from ui.page.page import page
from ui.shell import choice
from ui.shell.guidance.lessons import lessons, routes
from ui.words import texts
from views.lessons import lessons_sections as sections
from views.lessons.bug_exercise import BUGS, EXERCISE, bug_exercise

with page("lessons", strip=False) as p:
    if choice.value(EXERCISE) == BUGS:
        bug_exercise(p)
        p.finish()
    sections.join_by_code(p)
    found, problems = lessons(texts.language())
    ready, more_problems = routes(texts.language())
    for problem in (*problems, *more_problems):
        st.warning(p.md("broken", message=problem), icon=":material/edit_document:")
    if not found:
        st.info(p.text["none"])
    sections.say_what_is_finished(p, found, ready)
    if ready:
        st.subheader(p.text["routes"], anchor=False)
        sections.lesson_cards(p, ready, first=ready[0])
        st.subheader(p.text["all_lessons"], anchor=False)
    sections.lesson_cards(p, found, first=None if ready or not found else found[0])
    sections.exercise_card(p)
    sections.offer_results(p, (*ready, *found))
    p.say("own", small=True)
    ask_for_address(p.text)
