"""The maps of the Heads page: heads with a role large and named, others small; or all kinds."""

import streamlit as st

from charts.canvas.attention_heads import attention_heads
from charts.canvas.attention_maps import predicted_rows
from charts.canvas.attention_overview import attention_overview
from charts.canvas.choices import AnyHead
from ui.shell import choice
from ui.show.drawings import show_grid, show_overview
from ui.words.texts import PageText
from views.heads.heads_controls import FRAMED
from views.heads.heads_view_model import HeadsViewModel, place_of, role_name
from views.heads.role_words import captions, grouped, head_words, words_here, words_of_followed, words_on_image

MANY_TOKENS = 64  # with more tokens most weights are too small for the fixed scale


def show_maps(heads: HeadsViewModel, text: PageText) -> None:
    """Draw the maps of this sentence; a click on one selects that head on all pages."""
    if heads.choices.every:
        _show_every_kind(heads, text)
    else:
        _show_one_kind(heads, text)
    if not heads.choices.stretch and (count := len(heads.views[0].key)) > MANY_TOKENS:
        st.caption(text["dark"].format(count=count, switch=text["stretch"]))


def _show_one_kind(heads: HeadsViewModel, text: PageText) -> None:
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
    _say_what_is_framed(heads, text)


def _faded(heads: HeadsViewModel, text: PageText) -> str:
    """Say in the legend what pale maps are."""
    if heads.speaks_of_many:
        return text["faded"].format(where=text["claim_many"])
    on_first = any(role_name(head) == "first" for head in heads.shown.at_rest)
    return text["faded_first" if on_first else "faded"].format(where=text["claim_here"])


def _say_what_is_framed(heads: HeadsViewModel, text: PageText) -> None:
    """Write how many heads are in the frame, with a button that shows all again."""
    if places := heads.choices.framed:
        with st.container(horizontal=True, vertical_alignment="center"):
            named = ", ".join(f"{layer}.{head}" for layer, head in places)
            st.markdown(text["scatter_brushed"].format(count=len(places), heads=named), width="content")
            st.button(text["scatter_all"], icon=":material/undo:", key="heads all again", on_click=_show_all)


def _show_all() -> None:
    choice.put(FRAMED)


def _show_every_kind(heads: HeadsViewModel, text: PageText) -> None:
    """Draw all kinds of attention in one figure, each head with its role; heads without one are pale."""
    clear = [[place_of(head) for head in kind.heads.with_role] for kind in heads.every_kind]
    words = [captions(kind.heads, text) for kind in heads.every_kind]
    figure = attention_overview(
        [kind.views for kind in heads.every_kind],
        selected=AnyHead(*heads.location),
        captions=[{place: short[place] for place in places} for short, places in zip(words, clear, strict=True)],
        clear=clear,
        faded=_faded(heads, text),
        stretch=heads.choices.stretch,
        heads_a_key=len(heads.sharing_keys),
    )
    show_overview(figure, key="heads of every kind")
