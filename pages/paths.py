"""Paths: which way did the word take? Activations of a clean run are put back; the routes of information are drawn."""

from functools import partial

import streamlit as st

from ui.shell.page import page
from ui.shell.selectors import chosen_section
from views.paths.flow import flow
from views.paths.patching import patching

KEY = "paths_section"
SECTIONS = {
    "tokens": partial(patching, view="tokens"),
    "heads": partial(patching, view="heads"),
    "flow": flow,
}

needs = () if st.session_state.get(KEY) == "flow" else ("stack",)  # routes go through all stacks
with page("paths", needs=needs) as p:
    row = st.container(horizontal=True, vertical_alignment="bottom")
    with row:
        section = chosen_section(p.text, list(SECTIONS), key=KEY, help=p.text["section_help"])
    if (section == "flow") == bool(needs):  # an address asked for it, which is known only now
        st.rerun()
    SECTIONS[section](p, row)
