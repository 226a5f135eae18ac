"""Lessons: their list, an exercise, and printed worksheets."""

import streamlit as st

from ui.page.page import page
from ui.shell import choice
from ui.shell.guidance.lessons import lessons
from ui.shell.guidance.routes import routes
from ui.shell.in_class.class_address import ask_for_address
from ui.words import texts
from ui.words.texts import as_plain
from views.lessons.bug_exercise import BUGS, EXERCISE, bug_exercise
from views.lessons.joining import join_by_code
from views.lessons.lesson_cards import exercise_card, lesson_cards, say_what_is_finished
from views.lessons.results import offer_results

with page("lessons", strip=False) as p:
    if choice.value(EXERCISE) == BUGS:
        bug_exercise(p)
        p.finish()
    join_by_code(p)
    found, problems = lessons(texts.language())
    for problem in problems:
        st.warning(p.text["broken"].format(message=as_plain(problem)), icon=":material/edit_document:")
    if not found:
        st.info(p.text["none"])
    ready = routes(texts.language())
    say_what_is_finished(p, found, ready)
    if ready:
        st.subheader(p.text["routes"], anchor=False)
        lesson_cards(p, ready, first=ready[0])
        st.subheader(p.text["all_lessons"], anchor=False)
    lesson_cards(p, found, first=None if ready or not found else found[0])
    exercise_card(p)
    offer_results(p, (*ready, *found))
    st.caption(p.text["own"])
    ask_for_address(p.text)
