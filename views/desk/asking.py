"""Asking the class: an own question, one of a lesson, or the next token."""

from dataclasses import replace

import streamlit as st

from ui.classroom import class_state as classes
from ui.classroom.class_state import (
    LEAST_OPTIONS,
    LONGEST_ANSWER,
    LONGEST_PROMPT,
    MOST_OPTIONS,
    MOST_QUESTIONS,
    Class,
    Question,
)
from ui.classroom.stores import StoreError
from ui.page.page import Page, guard
from ui.shell import focus as shared_focus
from ui.shell.fragments import fragment
from ui.shell.guidance.lesson_bar import step_focus
from ui.shell.guidance.lessons import Lesson, lessons
from ui.shell.in_class import desk_session
from ui.shell.in_class.questions import question_of
from ui.shell.in_class.shared_view import write_view
from ui.words import texts
from views.desk.class_tables import read_options

KINDS = ("choice", "lesson", "text")


@fragment
def compose_question(p: Page) -> None:
    """Draw the form of a question while none is being asked."""
    with guard():
        try:
            state = desk_session.renewed()
        except StoreError:
            return  # question_panel says so
        if state is None or state.question is not None:
            return
        st.subheader(p.text["ask_title"], anchor=False)
        if len(state.questions) >= MOST_QUESTIONS:
            st.info(p.text["most"].format(most=MOST_QUESTIONS))
            return
        kind = st.segmented_control(
            p.text["kind"], KINDS, default=KINDS[0], format_func=lambda kind: p.text[f"kind_{kind}"], key="desk kind",
            required=True, label_visibility="collapsed",
        )  # fmt: skip
        {"choice": _own, "lesson": _from_lesson, "text": _next_token}[kind](p, state)


def _own(p: Page, state: Class) -> None:
    prompt = st.text_area(p.text["prompt"], key="desk prompt", max_chars=LONGEST_PROMPT, height=68)
    typed = st.text_area(p.text["options"], key="desk options", max_chars=1500, height=120)
    options = read_options(typed)
    correct = st.selectbox(
        p.text["correct"], range(-1, len(options)), key="desk correct",
        format_func=lambda index: p.text["no_correct"] if index < 0 or index >= len(options) else options[index],
    )  # fmt: skip
    if not st.button(p.text["ask"], type="primary", icon=":material/quiz:", key="desk ask"):
        return
    if not prompt.strip():
        st.warning(p.text["prompt_wrong"])
    elif not LEAST_OPTIONS <= len(options) <= MOST_OPTIONS:
        st.warning(p.text["options_wrong"].format(count=len(options)))
    else:
        _ask(Question(prompt, options, answer=str(correct) if 0 <= correct < len(options) else ""))


def _from_lesson(p: Page, state: Class) -> None:
    found = {
        lesson.name: lesson for lesson in lessons(texts.language())[0] if any(one.question for one in lesson.steps)
    }
    name = st.selectbox(p.text["lesson"], found, format_func=lambda name: found[name].title, key="desk lesson")
    if name is None:
        return
    lesson = found[name]
    steps = [number for number, step in enumerate(lesson.steps, 1) if step.question]
    key = f"desk task {name}"
    number = st.selectbox(
        p.text["task"], steps, format_func=lambda number: f"{number}. {lesson.steps[number - 1].title}", key=key,
    )  # fmt: skip
    st.markdown(f"**{lesson.steps[number - 1].question}**")
    with_view = st.checkbox(p.text["with_view"], value=True, key="desk with view")
    if st.button(p.text["ask"], type="primary", icon=":material/quiz:", key="desk ask"):
        if with_view:
            _show_step(lesson, number)
        _ask(question_of(lesson, number, code=state.code))


def _next_token(p: Page, state: Class) -> None:
    sentence = shared_focus.current().sentence
    prompt = st.text_area(
        p.text["prompt"], value=p.text["prompt_next"].format(sentence=sentence)[:LONGEST_PROMPT], height=68,
        key="desk next prompt", max_chars=LONGEST_PROMPT,
    )  # fmt: skip
    answer = st.text_input(p.text["correct_text"], key="desk next answer", max_chars=LONGEST_ANSWER)
    if not st.button(p.text["ask"], type="primary", icon=":material/quiz:", key="desk ask"):
        return
    if not prompt.strip():
        st.warning(p.text["prompt_wrong"])
    else:
        _ask(Question(prompt, answer=answer))


def _show_step(lesson: Lesson, number: int) -> None:
    focus = replace(shared_focus.current(), came_from="")
    focus = replace(focus, **step_focus(lesson, number, focus))
    page, query = lesson.steps[number - 1].page, write_view(focus, {})
    desk_session.change(lambda state: classes.show(state, page, query, checkpoint=focus.checkpoint, moves=True))


def _ask(question: Question) -> None:
    if desk_session.change(lambda state: classes.ask(state, question)):
        st.rerun()
