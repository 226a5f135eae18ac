"""Desk: where is the class, and what does it think? For the instructor."""

import streamlit as st

from ui.classroom import session
from ui.page.page import page
from views.desk import desk_sections as sections

with page("desk", strip=False) as p:
    if not session.is_desk_open():
        sections.ask_for_secret(p)
    elif not session.code():
        sections.choose_class(p)
    else:
        students, questions = st.columns([2, 3], gap="large")
        with students:
            sections.join_panel(p)
            sections.class_panel(p)
        with questions:
            sections.question_panel(p)
            sections.end_of_class(p)
