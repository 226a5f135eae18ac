"""By hand: every number of a Transformer on one sheet, which you can change, guess and print."""

import streamlit as st

from ui.page.page import page
from views.by_hand import by_hand_sections as sections

with page("by_hand", strip=False) as p:
    st.html(sections.STYLE)
    with st.container(key="by hand page"):
        sections.draw_sheet(p)
