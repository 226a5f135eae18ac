"""By hand: every number of a Transformer on one sheet, which you can change, guess and print."""

import streamlit as st

from ui.page.page import page
from views.by_hand.sheet_in_browser import STYLE, draw_sheet

with page("by_hand", strip=False) as p:
    st.html(STYLE)
    with st.container(key="by hand page"):
        draw_sheet(p)
