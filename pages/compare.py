"""Compare: what changes when one thing changes? Two sentences, two checkpoints, three kinds of model."""

import streamlit as st

from transformer.files.text_tower import has_text_tower
from ui.lab import shown_head
from ui.shell import choice
from ui.shell.choice import chosen_option
from ui.shell.page import Page, page
from views.compare.image_and_text import image_and_text
from views.compare.model_layers import layers
from views.compare.three_kinds import kinds
from views.compare.two_checkpoints import checkpoints
from views.compare.two_sentences import sentences

MODES = {
    "sentences": sentences,
    "checkpoints": checkpoints,
    "kinds": kinds,
    "layers": layers,
    "caption": image_and_text,
}


def modes(p: Page) -> list[str]:
    """Return the comparisons that this model allows."""
    if p.reads_pictures:  # other models would read an image as text
        return ["sentences", "layers", *(["caption"] if has_text_tower(p.checkpoint) else [])]
    return ["sentences", "checkpoints", "kinds", "layers"]


def needs(p: Page) -> tuple[str, ...]:
    """Return no selectors if the page shows the head that differs most."""
    names = choice.names_of(p.text, "mode", modes(p))
    mode = choice.read_option("compare_mode", names, "sentences")
    without = mode == "caption" or (mode == "sentences" and not shown_head.is_chosen(p))
    return () if without else ("kind", "layer", "head")


with page("compare", needs=needs, strip=False) as p:
    with st.container(horizontal=True, horizontal_alignment="distribute"):
        mode = chosen_option(p.text, "mode", modes(p), key="compare_mode", label_visibility="collapsed", wrap=True)
        if mode == "sentences":
            shown_head.choose_head(p)
    MODES[mode](p)
