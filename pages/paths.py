"""Paths: which way did the word take? Activations of a clean run are put back; the routes of information are drawn."""

from functools import partial

import streamlit as st

from ui.shell.page import page
from ui.shell.selectors import chosen_section
from views.paths.flow import flow
from views.paths.patching import patching

SECTIONS = {
    "tokens": partial(patching, view="tokens"),
    "heads": partial(patching, view="heads"),
    "flow": flow,
}

with page("paths", needs=("stack",)) as p:
    row = st.container(horizontal=True, vertical_alignment="bottom")
    with row:
        section = chosen_section(p.text, list(SECTIONS), key="paths_section", help=p.text["section_help"])
    SECTIONS[section](p, row)
