"""The sections of Lessons: joining a class, a card per lesson with its sheets, results to hand in."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from urllib.parse import urlencode

import streamlit as st

from charts.documents.document_parts import Blanks, Paragraph, Part, Table
from ui.classroom import session
from ui.classroom.class_address import address_for_class
from ui.page.page import Page
from ui.shell import choice
from ui.shell import focus as shared_focus
from ui.shell.focus import Focus, address_of, current
from ui.shell.guidance.guesses import MOST_TRIES, Guess, Score, answered_questions, score_of
from ui.shell.guidance.lesson_bar import begin_lesson, just_finished, step_focus
from ui.shell.guidance.lessons import ANSWER, Lesson
from ui.shell.navigation import DESK, page_names, pages
from ui.show.exports import document_of
from ui.words import texts
from ui.words.texts import Marked, unmarked
from views.lessons.bug_exercise import BUGS, EXERCISE
from views.lessons.worksheet import worksheet
from views.lessons.worksheet_drawings import step_figures

_CODE = "join code"
_LEAST_WIDTH = 290  # pixels of a card; as many as fit are beside each other
_MOST_IN_A_ROW = 3


def join_by_code(p: Page) -> None:
    """Draw a box for the code of a class, and a link to the desk, unless this session is in a class."""
    if not session.classes_exist() or shared_focus.class_code() or session.code():
        return
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        box = {"max_chars": 20, "help": p.text["join_help"], "width": 220, "on_change": _join}
        st.text_input(p.text["join"], key=_CODE, **box)
        st.page_link(pages()[DESK], label=p.text["desk"], icon=":material/co_present:")


def _join() -> None:
    if typed := st.session_state[_CODE].strip():
        session.join(typed)


# ---- the list -------------------------------------------------------------------------------------------------------


def say_what_is_finished(p: Page, found: Sequence[Lesson], ready: Sequence[Lesson]) -> None:
    """Draw the score of the lesson that the reader has just finished, and the next one to start."""
    lesson = next((one for one in (*found, *ready) if just_finished(one.name)), None)
    if lesson is None:
        return
    score = score_of(lesson)
    said = p.md("finished_score", first=score.first, count=score.answered) if score.answered else ""
    onward = found[found.index(lesson) + 1 :] if lesson in found else ()
    what = p.md("finished_next" if onward else "finished_last")
    with st.container(border=True, horizontal=True, vertical_alignment="center", key="lesson finished"):
        title = p.md("finished", title=Marked(lesson.title))
        st.markdown(f":material/flag: {title} {said} {what}", width="stretch")
        if onward and st.button(onward[0].title, type="primary", icon=":material/play_arrow:", key="next lesson"):
            begin_lesson(onward[0])


def lesson_cards(p: Page, found: Sequence[Lesson], *, first: Lesson | None = None) -> None:
    """Draw aim and duration of every lesson, with buttons for start, worksheet and answer key.

    The button of ``first``, with which a newcomer begins, stands out.
    """
    if not found:
        return
    with st.grid(_MOST_IN_A_ROW, min_column_width=_LEAST_WIDTH, key=f"lesson cards {found[0].name}"):
        for lesson in found:
            with st.container(border=True, height="stretch", gap="xsmall", key=f"lesson {lesson.name}"):
                _card(p, lesson, stands_out=lesson is first)


def _card(p: Page, lesson: Lesson, *, stands_out: bool) -> None:
    score = score_of(lesson)
    facts = [p.md("minutes", minutes=lesson.minutes), p.md("steps", count=len(lesson.steps))]
    if score.answered:
        facts.append(p.md("score", first=score.first, right=score.in_the_end, count=score.answered))
    st.markdown(f"##### {lesson.title}")
    st.markdown(lesson.aim)
    st.caption(" · ".join(facts))
    look = {"type": "primary" if stands_out else "secondary", "icon": ":material/play_arrow:"}
    if st.button(p.text["again" if score.answered else "start"], key=f"start {lesson.name}", **look):
        begin_lesson(lesson)
    focus, base = current(), address_for_class()
    with st.container(horizontal=True, gap="small"):
        for kind, icon in (("worksheet", "print"), ("key", "key")):
            look = {"type": "tertiary", "icon": f":material/{icon}:", "key": f"{kind} {lesson.name}"}
            made = partial(_sheet, p, lesson, focus, base, key=kind == "key")
            download(p.text[kind], made, file_name=f"{lesson.name}-{kind}.html", **look)


def download(label: str, made: Callable[[], str], **more: str) -> None:
    """Offer a document, which is made on request, outside of the session's run."""
    language = texts.language()

    def data() -> bytes:
        with texts.use_language(language):
            return made().encode("utf-8", errors="replace")

    st.download_button(label, data=data, mime="text/html", on_click="ignore", **more)


def _sheet(p: Page, lesson: Lesson, focus: Focus, base: str, *, key: bool) -> str:
    link = partial(step_link, lesson, focus=focus, base=base)
    return worksheet(p, lesson, key=key, link=link, figures=step_figures(p, lesson, focus))


def step_link(lesson: Lesson, number: int, *, focus: Focus, base: str) -> str:
    """Return the whole address of a step, counted from 1; "" if the app's address is unknown."""
    if not base:
        return ""
    focus = replace(focus, came_from="")  # a printed link has no reader's own sentence
    focus = replace(focus, **step_focus(lesson, number, focus))
    name = lesson.steps[number - 1].page
    path = "" if name == page_names()[0] else name
    return f"{base.rstrip('/')}/{path}?{urlencode(address_of(focus, whole=True))}"


def exercise_card(p: Page) -> None:
    """Draw a card that opens the exercise “Which bug is this?”."""
    with st.container(border=True, horizontal=True, vertical_alignment="center", key="exercise"):
        st.markdown(f"##### {p.md('bugs.title')}\n{p.md('bugs.aim')}", width="stretch")
        opens = {"on_click": choice.put, "args": (EXERCISE, BUGS)}
        st.button(p.words("bugs.start"), icon=":material/play_arrow:", key="start exercise", **opens)


# ---- results --------------------------------------------------------------------------------------------------------


def offer_results(p: Page, found: Sequence[Lesson]) -> None:
    """Offer this session's answers as a file to hand in, if there are any; the server keeps none."""
    answered = [(lesson, score, answered_questions(lesson)) for lesson in found if (score := score_of(lesson)).answered]
    if not answered:
        return
    st.subheader(p.text["results"], anchor=False)
    p.say("results_text")
    look = {"icon": ":material/assignment_turned_in:", "key": "results"}
    download(p.text["results_download"], partial(results, p, answered), file_name="glassformer-results.html", **look)


def results(p: Page, answered: Sequence[tuple[Lesson, Score, Sequence[Guess]]]) -> str:
    """Return the file: the score of each lesson, then every question with the options that were chosen."""
    scores = [(lesson.title, score.answered, score.first, score.in_the_end) for lesson, score, _ in answered]
    headings = [p.words(f"results_{name}") for name in ("lesson", "answered", "first", "in_the_end")]
    columns = [p.words(f"results_{name}") for name in ("task", "try_1", "try_2")]
    parts: list[Part] = [Table(headings, scores)]
    for lesson, _score, guesses in answered:
        parts += [Paragraph(f"**{lesson.title}**"), Table(columns, [_row(guess) for guess in guesses])]
    blanks = Blanks((p.words("sheet_name"), p.words("sheet_date")))
    return document_of(p.text["results"], parts, heading=p.text["results"], kicker="Glassformer", lead=[blanks])


def _row(guess: Guess) -> tuple[str, ...]:
    """Return the question and the options that were chosen, each marked as correct or wrong."""
    marked = [f"{'✓' if option == ANSWER else '✗'} {unmarked(guess.step.choices[option])}" for option in guess.tries]
    padding = [""] * (MOST_TRIES - len(marked))
    return (f"{guess.number}. {unmarked(guess.step.question)}", *marked, *padding)
