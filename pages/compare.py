"""Compare: what changes when one thing changes? Two sentences, two checkpoints, three kinds of model."""

import streamlit as st

from ui.page.page import Page, page
from views.compare import compare_sections as sections
from views.compare import model_layers, two_checkpoints
from views.compare.which_vector import which_vector

MODES = ("sentences", "checkpoints", "kinds", "layers")


def needs(p: Page) -> tuple[str, ...]:
    """Return no selectors if the page shows the head that differs most."""
    of_sentences = p.asked("mode", MODES, key="compare_mode") == "sentences"
    return () if of_sentences and not sections.is_chosen(p) else ("kind", "layer", "head")


with page("compare", needs=needs, strip=False) as p:
    with st.container(horizontal=True, horizontal_alignment="distribute"):
        mode = p.option("mode", MODES, key="compare_mode", label_visibility="collapsed", wrap=True)
        if mode == "sentences":
            sections.choose_head(p)
    if mode == "checkpoints":
        two_checkpoints.two_checkpoints(p)
    elif mode == "kinds":
        two_checkpoints.three_kinds(p)
    elif mode == "layers":
        model_layers.two_layers(p)
    else:
        pair = sections.two_sentences(p)
        sections.headline(p, pair)
        parts = ["maps", "heads", "stream", *([] if p.encodes_sentences else ["vectors"])]
        match p.option("more", parts, key="compare_more", label_visibility="collapsed", wrap=True):
            case "maps":
                sections.changed_row(p, pair)
                sections.maps(p, pair.sides)
            case "heads":
                sections.which_heads(p, pair.sides)
            case "stream":
                sections.in_which_layer(p, pair)
            case "vectors":
                which_vector(p, pair.kept)
    p.code()
