"""Compare: what changes when one thing changes? Two sentences, two checkpoints, three kinds of model."""

import streamlit as st

from ui.lab import shown_head
from ui.page.page import Page, page
from ui.shell import choice
from ui.shell.choice import chosen_option
from views.compare.model_layers import layers
from views.compare.three_kinds import kinds
from views.compare.two_checkpoints import checkpoints
from views.compare.two_sentences import sentences

MODES = {
    "sentences": sentences,
    "checkpoints": checkpoints,
    "kinds": kinds,
    "layers": layers,
}


def needs(p: Page) -> tuple[str, ...]:
    """Return no selectors if the page shows the head that differs most."""
    names = choice.names_of(p.text, "mode", list(MODES))
    mode = choice.read_option("compare_mode", names, "sentences")
    return () if mode == "sentences" and not shown_head.is_chosen(p) else ("kind", "layer", "head")


with page("compare", needs=needs, strip=False) as p:
    with st.container(horizontal=True, horizontal_alignment="distribute"):
        mode = chosen_option(p.text, "mode", list(MODES), key="compare_mode", label_visibility="collapsed", wrap=True)
        if mode == "sentences":
            shown_head.choose_head(p)
    MODES[mode](p)
