"""Paths: how did the information flow? A word is replaced, and parts of a run are patched in."""

from functools import partial

import streamlit as st

from ui.shell import choice
from ui.shell.choice import chosen_option
from ui.shell.page import page
from ui.words.texts import common
from views.paths.flow import flow
from views.paths.many import many
from views.paths.patching import head_to_head, patching

KEY = "paths_section"
SECTIONS = {
    "tokens": partial(patching, patches="tokens"),
    "heads": partial(patching, patches="heads"),
    "edges": head_to_head,
    "flow": flow,
    "many": many,
}
NEEDS = {"edges": ("stack", "kind", "layer", "head")}  # the other sections show all stacks

needs = NEEDS.get(choice.value(KEY, page="paths"), ())
with page("paths", needs=needs) as p:
    if p.reads_sounds:
        p.nothing_to_show(common("sound.no_paths"))
    row = st.container(horizontal=True, vertical_alignment="bottom", key="paths controls")
    with row:
        section = chosen_option(
            p.text, "section", list(SECTIONS), key=KEY, in_list=True, width=210, help=p.text["section_help"]
        )
    if needs != NEEDS.get(section, ()):  # an address requested it, which is known only now
        st.rerun()
    SECTIONS[section](p, row)
