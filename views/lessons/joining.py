"""Joining a class with the code that its instructor shows, on a server that has an instructor's desk."""

import streamlit as st

from ui.page.page import Page
from ui.shell import focus as shared_focus
from ui.shell.in_class import desk_session, membership
from ui.shell.navigation import DESK, pages

_CODE = "join code"


def join_by_code(p: Page) -> None:
    """Draw a box for the code, and a link to the desk, unless this session is in a class already."""
    if not membership.classes_exist() or shared_focus.class_code() or desk_session.code():
        return
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        st.text_input(
            p.text["join"], key=_CODE, max_chars=20, help=p.text["join_help"], width=220, on_change=_join
        )  # fmt: skip
        st.page_link(pages()[DESK], label=p.text["desk"], icon=":material/co_present:")


def _join() -> None:
    if typed := st.session_state[_CODE].strip():
        membership.join(typed)
