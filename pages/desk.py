"""Desk: where is the class, and what does it think? For the instructor."""

import streamlit as st

from ui.page.page import page
from ui.shell.in_class import desk_session
from ui.shell.in_class.membership import is_desk_open
from views.desk.desk import ask_for_secret, choose_class, class_panel, end_of_class, join_panel, question_panel

with page("desk", strip=False) as p:
    if not is_desk_open():
        ask_for_secret(p)
    elif not desk_session.code():
        choose_class(p)
    else:
        students, questions = st.columns([2, 3], gap="large")
        with students:
            join_panel(p)
            class_panel(p)
        with questions:
            question_panel(p)
            end_of_class(p)
