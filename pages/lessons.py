"""Lessons: the list of them, and worksheets on paper, of a lesson or of any view whose link is pasted."""

from __future__ import annotations

import streamlit as st

from ui import page
from ui import text as texts
from ui.lesson_views import lesson_cards, worksheet_from_link
from ui.lessons import lessons
from ui.phrases import said
from ui.text import as_plain

with page("lessons", strip=False) as p:
    found, problems = lessons(texts.language())
    for problem in problems:
        st.warning(p.text["broken"].format(message=as_plain(said(problem))), icon=":material/edit_document:")
    if not found:
        st.info(p.text["none"])
    lesson_cards(p, found)
    st.caption(p.text["own"])
    st.subheader(p.text["from_link"], anchor=False)
    worksheet_from_link(p)
