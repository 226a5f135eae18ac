"""Paths: which way did the word take? Activations of a clean run are put back; the routes of information are drawn."""

from functools import partial

import streamlit as st

from ui.shell import choice
from ui.shell.choice import chosen_section
from ui.shell.page import page
from views.paths.flow import flow
from views.paths.head_to_head import head_to_head
from views.paths.many import many
from views.paths.patching import patching

KEY = "paths_section"
SECTIONS = {
    "tokens": partial(patching, view="tokens"),
    "heads": partial(patching, view="heads"),
    "edges": head_to_head,
    "flow": flow,
    "many": many,
}
NEEDS = {"edges": ("stack", "kind", "layer", "head")}  # the others show all stacks

needs = NEEDS.get(choice.value(KEY, page="paths"), ())
with page("paths", needs=needs) as p:
    row = st.container(horizontal=True, vertical_alignment="bottom")
    with row:
        section = chosen_section(p.text, list(SECTIONS), key=KEY, help=p.text["section_help"])
    if needs != NEEDS.get(section, ()):  # an address asked for it, which is known only now
        st.rerun()
    SECTIONS[section](p, row)
