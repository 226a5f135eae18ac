"""Opening the desk with the instructor's secret, and a class."""

import streamlit as st

from ui.classroom.stores import StoreError, class_store
from ui.page.page import Page
from ui.shell.in_class import desk_session
from ui.words.texts import common, count_text


def ask_for_secret(p: Page) -> None:
    """Draw a box for the secret, which no address contains and nothing keeps."""
    with st.form("desk secret", width=420):
        typed = st.text_input(
            p.text["secret"], type="password", key="desk secret typed", help=p.text["secret_help"], max_chars=200,
            autocomplete="current-password",
        )  # fmt: skip
        if st.form_submit_button(p.text["unlock"], type="primary") and typed:
            if refused := desk_session.unlock(typed):
                st.warning(p.text[refused], icon=":material/lock:")
            else:
                st.rerun()


def choose_class(p: Page) -> None:
    """Offer a new class, and those that are open, for an instructor whose browser was closed."""
    if desk_session.take_ended():
        st.info(p.text["ended"], icon=":material/check:")
    try:
        if st.button(p.text["open"], type="primary", icon=":material/add:", key="desk open"):
            if desk_session.open_class():
                st.rerun()
            st.warning(p.text["full"], icon=":material/groups:")
        found = [state for code in class_store().codes() if (state := class_store().read(code)) is not None]
    except StoreError:
        st.warning(common("class.unreachable"), icon=":material/cloud_off:")
        return
    if found:
        st.subheader(p.text["opened"], anchor=False)
    for state in found:
        with st.container(horizontal=True, vertical_alignment="center"):
            students = count_text(len(state.students), "student")
            st.markdown(p.text["opened_line"].format(code=state.code, students=students), width="content")
            if st.button(p.text["run"], key=f"desk run {state.code}"):
                desk_session.run_class(state.code)
                st.rerun()
