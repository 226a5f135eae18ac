"""The instructor's desk: joining, who is where, the question with its answers, scores, the end."""

import time
from collections import Counter
from functools import partial
from html import escape
from pathlib import Path

import pandas as pd
import segno
import streamlit as st

from charts.toolkit.numbers import percent
from ui.classroom import class_state as classes
from ui.classroom import session
from ui.classroom.class_address import address_for_class, ask_for_address
from ui.classroom.class_bar import POLL, in_language, student_name, text_of
from ui.classroom.class_state import (
    LEAST_OPTIONS,
    LONGEST_ANSWER,
    LONGEST_PROMPT,
    MOST_OPTIONS,
    MOST_QUESTIONS,
    OPEN,
    SHOWN,
    SOLVED,
    Change,
    Class,
    Question,
)
from ui.classroom.stores import StoreError, class_store
from ui.page.page import Page, guard
from ui.shell import focus as shared_focus
from ui.shell.focus import CLASS
from ui.shell.fragments import fragment
from ui.shell.navigation import page_names
from ui.show.exports import as_csv
from ui.words import texts
from ui.words.texts import as_plain, common, listed, page_text, unmarked

KINDS = ("choice", "text")
_STYLE = Path(__file__).with_name("desk.css")


# ---- opening the desk and a class -----------------------------------------------------------------------------------


def ask_for_secret(p: Page) -> None:
    """Draw a box for the secret, which no address contains and nothing keeps."""
    with st.form("desk secret", width=420):
        typed = st.text_input(
            p.text["secret"], type="password", key="desk secret typed", help=p.text["secret_help"], max_chars=200,
            autocomplete="current-password",
        )  # fmt: skip
        if st.form_submit_button(p.text["unlock"], type="primary") and typed:
            if refused := session.unlock(typed):
                st.warning(p.md(refused), icon=":material/lock:")
            else:
                st.rerun()


def choose_class(p: Page) -> None:
    """Offer a new class, and those that are open, for an instructor whose browser was closed."""
    try:
        if st.button(p.text["open"], type="primary", icon=":material/add:", key="desk open"):
            if session.open_class():
                st.rerun()
            st.warning(p.text["full"], icon=":material/groups:")
        found = [state for code in class_store().codes() if (state := class_store().read(code)) is not None]
    except StoreError:
        st.warning(common("class.unreachable"), icon=":material/cloud_off:")
        return
    if not found:
        p.say("none_open", small=True)
        return
    st.subheader(p.text["opened"], anchor=False)
    for state in found:
        with st.container(horizontal=True, vertical_alignment="center"):
            line = p.md("opened_line", code=state.code, students=len(state.students))
            st.markdown(line, width="content")
            if st.button(p.text["run"], key=f"desk run {state.code}"):
                session.run_class(state.code)
                st.rerun()


# ---- the class ------------------------------------------------------------------------------------------------------


def join_panel(p: Page) -> None:
    """Draw the code, and the link as text and as a QR code."""
    st.html(_STYLE)
    code = session.code()
    link = f"{address_for_class()}/?{CLASS}={code}"
    p.say("join")
    with st.container(key="desk code"):
        st.markdown(code)
    with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
        drawn = segno.make(link, error="m", micro=False).svg_data_uri(scale=4, light="#fff")
        st.html(f'<img class="desk-qr" alt="{escape(p.words("code_picture"))}" src="{drawn}">', width="content")
        with st.container(width="stretch"):
            st.markdown(as_plain(link))
    ask_for_address(p.text)


@partial(fragment, run_every=POLL)
def class_panel(p: Page) -> None:
    """Draw who is there, and on which page."""
    with guard():
        if (state := session.renewed_or_left()) is None:
            return
        if line := session.said():
            st.caption(f":material/info: {line}")
        active = classes.active_students(state, now=time.time())
        here, joined = st.columns(2)
        here.metric(p.text["active"], len(active))
        joined.metric(p.text["joined"], len(state.students))
        titles = {name: page_text(name).title for name in page_names()}
        where = {who: titles.get(student.page, student.page) for who, student in active.items()}
        if not state.students:
            p.say("nobody", small=True)
        if where:
            found = sorted(Counter(where.values()).items(), key=lambda one: (-one[1], one[0]))
            p.say("places", pages=listed((p.md("place", page=page, count=count) for page, count in found), " · "))
        with st.expander(p.text["who"], key="desk who", on_change="rerun") as who:
            if who.open:
                _students(p, state, {one: where.get(one, p.text["away"]) for one in state.students})
        st.session_state["desk door"] = state.is_closed
        st.toggle(
            p.text["close_door"], key="desk door", help=p.text["close_door_help"],
            on_change=lambda: session.change(partial(classes.close_door, is_closed=st.session_state["desk door"])),
        )  # fmt: skip


def _students(p: Page, state: Class, where: dict[str, str]) -> None:
    """Draw every student with the open page, and the button that removes one."""
    names = {who: f"{student_name(state, who)} · {where[who]}" for who in state.students}
    st.markdown("  \n".join(map(as_plain, names.values())))
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        chosen = st.selectbox(p.text["student"], list(names), index=None, key="desk student", format_func=names.get)
        st.button(
            p.text["remove"], key="desk remove", help=p.text["remove_help"], disabled=chosen is None,
            on_click=lambda: session.change(lambda state: classes.remove(state, chosen)),
        )  # fmt: skip


# ---- a question -----------------------------------------------------------------------------------------------------


@partial(fragment, run_every=POLL)
def question_panel(p: Page) -> None:
    """Draw the question that is being asked, or the form of the next one, the same at every desk."""
    with guard():
        if (state := session.renewed_or_left()) is None:
            return
        if state.question is not None:
            _question(p, state, state.question)
        elif len(state.questions) >= MOST_QUESTIONS:
            st.info(p.md("most", most=MOST_QUESTIONS))
        else:
            _form(p)


def _question(p: Page, state: Class, question: Question) -> None:
    text = text_of(question, state.code)
    p.say("question_number", small=True, number=len(state.questions))
    st.markdown(f"#### {text.prompt}")
    answers, students = len(question.answers), len(state.students)
    answered = p.md("answered", answers=answers, students=students)
    if question.phase == OPEN:
        st.progress(min(1.0, answers / max(1, students)), answered)
        st.markdown("  \n".join(f"**{_letter(index)}** {option}" for index, option in enumerate(text.options)))
        p.say("hidden", small=True)
    else:
        st.markdown(answered)
        st.html(answer_bars(in_language(question, state.code)))
        if not answers:
            p.say("no_answers", small=True)
    if question.phase == SOLVED and text.answer:
        st.markdown(f"**{common('class.answer', answer=text.answer)}** {text.explanation}")
    with st.container(horizontal=True, gap="small"):
        if question.phase == OPEN:
            _step_button(p, "show_answers", lambda state: classes.advance(state, SHOWN), kind="primary")
        elif question.phase == SHOWN and question.answer:
            _step_button(p, "reveal", lambda state: classes.advance(state, SOLVED), kind="primary")
        _step_button(p, "close", classes.stop_asking)


def _step_button(p: Page, name: str, change: Change, *, kind: str = "secondary") -> None:
    st.button(p.text[name], key=f"desk {name}", type=kind, on_click=session.change, args=(change,))


def answer_bars(question: Question) -> str:
    """Return the answers in HTML, each with its number and a bar; once solved, the correct one is marked.

    A list holds long options, and screen readers read it. It has a row per option, or per text by frequency.
    """
    total, rows = len(question.answers), []
    for index, (given, count) in enumerate(classes.counts(question)):
        right = question.phase == SOLVED and classes.is_right(question, given)
        share, letter = count / total if total else 0.0, f"<b>{_letter(index)}</b> " if question.options else ""
        rows.append(
            f"<li{' class=right' if right else ''}><span><bdi>{letter}{escape(_shown(question, given))}</bdi>"
            f"{' <span aria-hidden=true>✓</span>' if right else ''}</span><span>{count} · {percent(share)}</span>"
            f'<i style="width: {100 * share:.1f}%"></i></li>'
        )
    return f'<ol class="answers">{"".join(rows)}</ol>'


def _letter(index: int) -> str:
    return chr(ord("A") + index)


def _shown(question: Question, given: str) -> str:
    """Return an answer as plain text; options of lessons are Markdown."""
    if not question.options:
        return given
    option = question.options[int(given)]
    return unmarked(option) if question.lesson else option


def _form(p: Page) -> None:
    st.subheader(p.text["ask_title"], anchor=False)
    kind = st.segmented_control(
        p.text["kind"], KINDS, default=KINDS[0], format_func=lambda kind: p.text[f"kind_{kind}"], key="desk kind",
        required=True, label_visibility="collapsed",
    )  # fmt: skip
    usual, options = "", ()
    if kind == "text":
        usual = p.words("prompt_next", sentence=shared_focus.current().sentence)[:LONGEST_PROMPT]
    prompt = st.text_area(p.text["prompt"], usual, key=f"desk prompt {kind}", max_chars=LONGEST_PROMPT, height=68)
    if kind == "choice":
        typed = st.text_area(p.text["options"], key="desk options", max_chars=1500, height=120)
        options = tuple(line.strip() for line in typed.splitlines() if line.strip())
        correct = st.selectbox(
            p.text["correct"], range(-1, len(options)), key="desk correct",
            format_func=lambda index: p.text["no_correct"] if not 0 <= index < len(options) else options[index],
        )  # fmt: skip
        answer = str(correct) if 0 <= correct < len(options) else ""
    else:
        answer = st.text_input(p.text["correct_text"], key="desk next answer", max_chars=LONGEST_ANSWER)
    p.say("lesson_questions", small=True)
    if not st.button(p.text["ask"], type="primary", icon=":material/quiz:", key="desk ask"):
        return
    if not prompt.strip():
        st.warning(p.text["prompt_wrong"])
    elif kind == "choice" and not LEAST_OPTIONS <= len(options) <= MOST_OPTIONS:
        st.warning(p.md("options_wrong", count=len(options)))
    elif session.change(lambda state: classes.ask(state, Question(prompt, options, answer=answer))):
        st.rerun()


# ---- the end --------------------------------------------------------------------------------------------------------


def end_of_class(p: Page) -> None:
    """Draw the download of the scores and the button that ends the class."""
    with st.container(horizontal=True, gap="small", key="desk end row"):
        _scores_button(p, "scores")
        with st.popover(p.text["end"], icon=":material/delete:", key="desk end"):
            p.say("end_text")
            _scores_button(p, "scores again")
            if st.button(p.text["end_now"], type="primary", key="desk end now"):
                try:
                    session.end()
                except StoreError:
                    st.warning(common("class.unreachable"), icon=":material/cloud_off:")
                else:
                    st.rerun()


def _scores_button(p: Page, key: str) -> None:
    code, language = session.code(), texts.language()
    st.download_button(
        p.text["scores"],
        data=lambda: scores_file(code, language),
        file_name=f"glassformer-class-{code}.csv",
        mime="text/csv",
        icon=":material/download:",
        key=f"desk {key}",
        on_click="ignore",
    )


def scores_file(code: str, language: str) -> bytes:
    """Return the scores as CSV: a row per student, with every answer and how many are right.

    It is called outside of a run, and returns nothing if the class is gone.
    """
    with texts.use_language(language):
        text = page_text("desk")
        try:
            state = class_store().read(code)
        except StoreError:
            state = None
        if state is None:
            return b""
        asked = [in_language(one, code) for one in state.questions]
        prompts = [f"{number}. {one.prompt}" for number, one in enumerate(asked, 1)]
        rows = [
            (
                student_name(state, who),
                *(_shown(one, one.answers[who]) if who in one.answers else "" for one in asked),
                *classes.score(asked, who),
            )
            for who in state.students
        ]
        columns = [text["scores_student"], *prompts, text["scores_right"], text["scores_of"]]
        return as_csv(pd.DataFrame(rows, columns=columns))
