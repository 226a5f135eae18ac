"""The Lessons page: a card for every lesson, with its worksheet and answer key."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import streamlit as st

from ui.page.page import Page
from ui.shell import choice
from ui.shell.focus import Focus, address_of, current
from ui.shell.guidance.guesses import score_of
from ui.shell.guidance.lesson_bar import begin_lesson, just_finished, step_focus
from ui.shell.guidance.lessons import Lesson
from ui.shell.in_class.class_address import address_for_class
from ui.shell.navigation import GROUPS
from ui.words import texts
from views.lessons.bug_exercise import BUGS, EXERCISE
from views.lessons.worksheet import Sheet, lesson_sheet, link_to, with_figures, worksheet
from views.lessons.worksheet_drawings import step_figures

_LEAST_WIDTH = 290  # pixels of a card; as many as fit are beside each other
_MOST_IN_A_ROW = 3


def lesson_cards(p: Page, found: Sequence[Lesson], *, first: Lesson | None = None) -> None:
    """Draw aim and duration of every lesson, with buttons for start, worksheet and answer key.

    The button of ``first``, with which a newcomer begins, stands out.
    """
    if not found:
        return
    base = address_for_class()
    with st.grid(_MOST_IN_A_ROW, min_column_width=_LEAST_WIDTH, key=f"lesson cards {found[0].name}"):
        for lesson in found:
            with st.container(border=True, height="stretch", gap="xsmall", key=f"lesson {lesson.name}"):
                _card(p, lesson, base=base, stands_out=lesson is first)


def exercise_card(p: Page) -> None:
    """Draw a card that opens the exercise “Which bug is this?”."""
    text = p.text[BUGS]
    with st.container(border=True, horizontal=True, vertical_alignment="center", key="exercise"):
        st.markdown(f"##### {text['title']}\n{text['aim']}", width="stretch")
        st.button(
            text["start"],
            icon=":material/play_arrow:",
            key="start exercise",
            on_click=choice.put,
            args=(EXERCISE, BUGS),
        )


def say_what_is_finished(p: Page, found: Sequence[Lesson], ready: Sequence[Lesson]) -> None:
    """Draw the score of the lesson that the reader has just finished, and the next one to start."""
    lesson = next((one for one in (*found, *ready) if just_finished(one.name)), None)
    if lesson is None:
        return
    score = score_of(lesson)
    said = p.text["finished_score"].format(first=score.first, count=score.answered) if score.answered else ""
    onward = found[found.index(lesson) + 1 :] if lesson in found else ()
    what = p.text["finished_next" if onward else "finished_last"]
    with st.container(border=True, horizontal=True, vertical_alignment="center", key="lesson finished"):
        st.markdown(f":material/flag: {p.text['finished'].format(title=lesson.title)} {said} {what}", width="stretch")
        if onward and st.button(onward[0].title, type="primary", icon=":material/play_arrow:", key="next lesson"):
            begin_lesson(onward[0])


def _card(p: Page, lesson: Lesson, *, base: str, stands_out: bool) -> None:
    score = score_of(lesson)
    facts = [p.text["minutes"].format(minutes=lesson.minutes), p.text["steps"].format(count=len(lesson.steps))]
    if score.answered:
        facts.append(p.text["score"].format(first=score.first, right=score.in_the_end, count=score.answered))
    st.markdown(f"##### {lesson.title}")
    st.markdown(lesson.aim)
    st.caption(" · ".join(facts))
    name = "again" if score.answered else "start"
    kind = "primary" if stands_out else "secondary"
    if st.button(p.text[name], type=kind, icon=":material/play_arrow:", key=f"start {lesson.name}"):
        begin_lesson(lesson)
    focus, text = current(), p.text

    def drawn() -> Sheet:
        sheet = lesson_sheet(lesson, text=text, link=lambda number: _step_link(lesson, number, focus, base=base))
        return with_figures(sheet, step_figures(lesson, focus, text=text))

    with st.container(horizontal=True, gap="small"):
        _downloads(p, drawn, name=lesson.name)


def _downloads(p: Page, drawn: Callable[[], Sheet], *, name: str) -> None:
    """Offer the worksheet and its key; ``drawn`` returns the sheet with its figures on request."""
    language = texts.language()
    for kind, icon in (("worksheet", ":material/print:"), ("key", ":material/key:")):
        st.download_button(
            p.text[kind],
            data=partial(_file, drawn, key=kind == "key", text=p.text, language=language),
            file_name=f"{name}-{kind}.html",
            mime="text/html",
            type="tertiary",
            icon=icon,
            key=f"{kind} {name}",
            on_click="ignore",
        )


def _file(drawn: Callable[[], Sheet], *, key: bool, text: texts.PageText, language: str) -> bytes:
    with texts.use_language(language):  # the file is generated outside the session's run
        return worksheet(drawn(), key=key, text=text).encode("utf-8", errors="replace")


def _step_link(lesson: Lesson, number: int, focus: Focus, *, base: str) -> str:
    focus = replace(focus, came_from="")  # a printed link has no reader's own sentence
    focus = replace(focus, **step_focus(lesson, number, focus))
    return _link(lesson.steps[number - 1].page, focus, base=base)


def _link(name: str, focus: Focus, *, base: str) -> str:
    return link_to(base, "" if name == _names()[0] else name, address_of(focus, whole=True))


def _names() -> list[str]:
    return [entry.name for group in GROUPS.values() for entry in group if entry.exists]
