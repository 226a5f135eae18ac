"""The maps of the Heads page: heads with a role large and named, others small."""

import streamlit as st

from charts.canvas.attention_heads import attention_heads
from charts.canvas.attention_maps import predicted_rows
from ui.show.drawings import show_grid
from ui.words.texts import PageText
from views.heads.heads_view_model import HeadsViewModel
from views.heads.role_words import grouped, words_here, words_on_image

MANY_TOKENS = 64  # with more tokens most weights are too small for the fixed scale


def show_maps(heads: HeadsViewModel, text: PageText) -> None:
    """Draw the maps of this sentence; a click on one selects that head on all pages."""
    _draw(heads, text)
    if not heads.choices.stretch and (count := len(heads.views[0].key)) > MANY_TOKENS:
        st.caption(text["dark"].format(count=count, switch=text["stretch"]))


def _draw(heads: HeadsViewModel, text: PageText) -> None:
    on_image = heads.image_row is not None
    colours, groups = grouped(heads, text)
    figure = attention_heads(
        heads.shown_views,
        named=heads.named,
        words=words_on_image(heads, text) if on_image else words_here(heads, text),
        clear=heads.tiles if on_image and not colours else list(colours),
        colours=colours,
        groups=groups,
        marked={place: heads.marked(place) for place in heads.tiles},
        image_row=heads.image_row,
        faded=text["faded"].format(count=len(heads.tiles) - len(colours)),
        selected=heads.selected,
        order=None if heads.in_table else heads.tiles,
        shifted_labels=predicted_rows(heads.trace, heads.location.kind),
        stretch=heads.choices.stretch,
        heads_a_key=len(heads.sharing_keys),
        scrolls=heads.choices.scrolls,
    )
    show_grid(figure, key="heads grid")
