"""The maps of the Heads page: heads with a role large and named, others small."""

import streamlit as st

from charts.canvas.attention_heads import attention_heads
from charts.canvas.attention_maps import predicted_rows
from ui.show.drawings import show_grid
from ui.words.texts import PageText
from views.heads.heads_view_model import HeadsViewModel, role_name
from views.heads.role_words import grouped, head_words, words_here, words_of_followed, words_on_image

MANY_TOKENS = 64  # with more tokens most weights are too small for the fixed scale


def show_maps(heads: HeadsViewModel, text: PageText) -> None:
    """Draw the maps of this sentence; a click on one selects that head on all pages."""
    _draw(heads, text)
    if not heads.choices.stretch and (count := len(heads.views[0].key)) > MANY_TOKENS:
        st.caption(text["dark"].format(count=count, switch=text["stretch"]))


def _draw(heads: HeadsViewModel, text: PageText) -> None:
    on_image = heads.image_row is not None
    words = head_words(heads.shown, text) | words_of_followed(heads, text) | words_here(heads, text)
    colours, groups = grouped(heads, text)
    pale = len(heads.tiles) - len(colours)
    figure = attention_heads(
        heads.shown_views,
        named=heads.named,
        words=words_on_image(heads, text) if on_image else words,
        clear=heads.tiles if on_image and not colours else list(colours),
        colours=colours,
        groups=groups,
        marked={place: heads.marked(place) for place in heads.tiles},
        image_row=heads.image_row,
        faded=_faded(heads, text) if heads.speaks_of_many else text["no_pattern_faded"].format(count=pale),
        selected=heads.selected,
        order=None if heads.in_table else heads.tiles,
        shifted_labels=predicted_rows(heads.trace, heads.location.kind),
        stretch=heads.choices.stretch,
        heads_a_key=len(heads.sharing_keys),
        scrolls=heads.choices.scrolls,
        keeps_named=heads.place not in heads.named or not heads.is_followed,
    )
    show_grid(figure, key="heads grid")


def _faded(heads: HeadsViewModel, text: PageText) -> str:
    """Say in the legend what pale maps are."""
    if heads.speaks_of_many:
        return text["faded"].format(where=text["claim_many"])
    on_first = any(role_name(head) == "first" for head in heads.shown.at_rest)
    return text["faded_first" if on_first else "faded"].format(where=text["claim_here"])
