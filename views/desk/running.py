"""A class that is running: how to join it, who is where, the question and its answers, and its end."""

import time
from dataclasses import replace
from functools import partial
from html import escape
from pathlib import Path

import segno
import streamlit as st

from ui.classroom import class_state as classes
from ui.classroom.class_state import OPEN, SHOWN, SOLVED, Change, Class, Question
from ui.classroom.stores import StoreError
from ui.page.page import Page, guard
from ui.shell import focus as shared_focus
from ui.shell.focus import CLASS
from ui.shell.fragments import fragment
from ui.shell.in_class import desk_session
from ui.shell.in_class.class_address import address_for_class, ask_for_address
from ui.shell.in_class.class_bar import POLL
from ui.shell.in_class.questions import in_language, text_of
from ui.shell.in_class.shared_view import open_view
from ui.shell.in_class.student_names import student_name
from ui.shell.navigation import page_names
from ui.show.csv_files import as_csv
from ui.words import texts
from ui.words.texts import as_plain, common, page_text
from views.desk.answer_bars import answer_bars, letter_of
from views.desk.class_tables import answer_rows, places, scores

_STYLE = Path(__file__).with_name("desk.css")


def join_panel(p: Page) -> None:
    """Draw the code, and the link as text and as a QR code."""
    st.html(_STYLE)
    code = desk_session.code()
    link = f"{address_for_class()}/?{CLASS}={code}"
    st.markdown(p.text["join"])
    with st.container(key="desk code"):
        st.markdown(code)
    with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
        drawn = segno.make(link, error="m", micro=False).svg_data_uri(scale=4, light="#fff")
        st.html(f'<img class="desk-qr" alt="{escape(p.text["code_picture"])}" src="{drawn}">', width="content")
        with st.container(width="stretch"):
            st.markdown(as_plain(link))
    ask_for_address(p.text)


def class_panel(p: Page) -> None:
    """Draw who is there, and on which page."""
    fragment(_class_panel, run_every=POLL)(p)


def _class_panel(p: Page) -> None:
    with guard():
        if (state := desk_session.renewed_or_left()) is None:
            return
        if line := desk_session.said():
            st.caption(f":material/info: {line}")
        active = classes.active_students(state, now=time.time())
        here, joined = st.columns(2)
        here.metric(p.text["active"], len(active))
        joined.metric(p.text["joined"], len(state.students))
        titles = {name: page_text(name).title for name in page_names()}
        if not state.students:
            st.caption(p.text["nobody"])
        if found := places(active, titles):
            lines = (p.text["place"].format(page=as_plain(title), count=count) for title, count in found)
            st.markdown(p.text["places"].format(pages=" · ".join(lines)))
        with st.expander(p.text["who"], key="desk who", on_change="rerun") as who:
            if who.open:
                for one, student in state.students.items():
                    where = titles.get(student.page, student.page) if one in active else p.text["away"]
                    st.markdown(f"{student_name(state, one)} · {as_plain(where)}")
                _remove_student(p, state)
        _close_door(p, state)
        _keep_checkpoint(p, state)
        if state.view and st.button(p.text["resume"], key="desk resume", icon=":material/visibility:"):
            open_view(state.view.page, state.view.address)


def _remove_student(p: Page, state: Class) -> None:
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        who = st.selectbox(
            p.text["student"], list(state.students), index=None, key="desk student",
            format_func=lambda who: student_name(state, who),
        )  # fmt: skip
        st.button(
            p.text["remove"], key="desk remove", help=p.text["remove_help"], disabled=who is None,
            on_click=lambda: desk_session.change(lambda state: classes.remove(state, who)),
        )  # fmt: skip


def _close_door(p: Page, state: Class) -> None:
    st.session_state["desk door"] = state.is_closed
    st.toggle(
        p.text["close_door"], key="desk door", help=p.text["close_door_help"],
        on_change=lambda: desk_session.change(partial(classes.close_door, is_closed=st.session_state["desk door"])),
    )  # fmt: skip


def _keep_checkpoint(p: Page, state: Class) -> None:
    name = state.checkpoint or shared_focus.current().checkpoint
    st.session_state["desk keep"] = bool(state.checkpoint)
    st.toggle(
        p.text["keep"].format(checkpoint=as_plain(name)), key="desk keep", help=p.text["keep_help"],
        on_change=_change_kept, args=(name,),
    )  # fmt: skip


def _change_kept(name: str) -> None:
    kept = name if st.session_state["desk keep"] else ""
    desk_session.change(lambda state: classes.keep_checkpoint(state, kept))


def question_panel(p: Page) -> None:
    """Draw the question that is being asked, if any, with its answers once they are shown."""
    fragment(_question_panel, run_every=POLL)(p)


def _question_panel(p: Page) -> None:
    with guard():
        state = desk_session.renewed_or_left()
        if state is None or state.question is None:
            return
        question, number = state.question, len(state.questions)
        text = text_of(question, state.code)
        st.caption(p.text["question_number"].format(number=number))
        st.markdown(f"#### {text.prompt}")
        answers, students = len(question.answers), len(state.students)
        answered = p.text["answered"].format(answers=answers, students=students)
        if question.phase == OPEN:
            st.progress(min(1.0, answers / max(1, students)), answered)
            st.markdown("  \n".join(f"**{letter_of(index)}** {option}" for index, option in enumerate(text.options)))
            st.caption(p.text["hidden"])
        else:
            st.markdown(answered)
            st.html(answer_bars(answer_rows(in_language(question, state.code)), lettered=bool(question.options)))
            if not answers:
                st.caption(p.text["no_answers"])
        if question.phase == SOLVED and text.answer:
            st.markdown(f"**{common('class.answer', answer=text.answer)}** {text.explanation}")
        _question_buttons(p, question)


def _question_buttons(p: Page, question: Question) -> None:
    with st.container(horizontal=True, gap="small"):
        if question.phase == OPEN:
            _step_button(p, "show_answers", lambda state: classes.advance(state, SHOWN), primary=True)
        elif question.phase == SHOWN and question.answer:
            _step_button(p, "reveal", lambda state: classes.advance(state, SOLVED), primary=True)
        if question.phase != OPEN:
            _step_button(p, "again", classes.ask_again, help=p.text["again_help"])
        if st.button(p.text["close"], key="desk close", icon=":material/close:"):
            desk_session.change(classes.stop_asking)
            st.rerun()  # the form for the next question appears


def _step_button(p: Page, name: str, change: Change, *, primary: bool = False, help: str | None = None) -> None:
    kind = "primary" if primary else "secondary"
    st.button(p.text[name], key=f"desk {name}", type=kind, help=help, on_click=desk_session.change, args=(change,))


def end_of_class(p: Page) -> None:
    """Draw the download of the scores and the button that ends the class."""
    with st.container(horizontal=True, gap="small", key="desk end row"):
        _scores_button(p, "scores")
        with st.popover(p.text["end"], icon=":material/delete:", key="desk end"):
            st.markdown(p.text["end_text"])
            _scores_button(p, "scores again")
            if st.button(p.text["end_now"], type="primary", key="desk end now"):
                try:
                    desk_session.end()
                except StoreError:
                    st.warning(common("class.unreachable"), icon=":material/cloud_off:")
                else:
                    st.rerun()


def _scores_button(p: Page, key: str) -> None:
    code = desk_session.code()
    st.download_button(
        p.text["scores"],
        data=partial(_scores_file, code, text=p.text, language=texts.language()),
        file_name=f"glassformer-class-{code}.csv",
        mime="text/csv",
        icon=":material/download:",
        key=f"desk {key}",
        on_click="ignore",
    )


def _scores_file(code: str, *, text: texts.PageText, language: str) -> bytes:
    with texts.use_language(language):  # the file is generated outside the session's run
        state = desk_session.state_of(code)
        if state is None:
            return b""
        state = replace(state, questions=tuple(in_language(one, code) for one in state.questions))
        return as_csv(scores(state, {who: student_name(state, who) for who in state.students}, text))
