"""The Attention page for guests of which only the attention weights are known."""

import streamlit as st

from transformer.runs.head_places import Head
from ui.page.page import Page
from ui.shell import choice
from ui.shell.choice import chosen_option
from views.attention.attention_controls import SHOW, STRETCH
from views.attention.attention_picture import draw, places
from views.attention.attention_view_model import AttentionChoices, attention_view_model
from views.attention.facts import row_numbers, say_row
from views.attention.reading_section import reading
from views.attention.shaded import shaded_sentence

_DRAWINGS = ("map", "lines", "rollout")


def has_queries(p: Page) -> bool:
    """Return whether the queries of the focused head were recorded."""
    return _queries(p) in p.trace


def show_weights_only(p: Page) -> None:
    """Draw the map, the sentence and the numbers, then report what is missing.

    Raises:
        NotExposedError: At the end; its message names what the model does not expose.
    """
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        drawing = chosen_option(p.text, "show", _DRAWINGS, key=SHOW, label_visibility="collapsed")
        stretch = drawing != "lines" and choice.toggle(p.text["stretch"], key=STRETCH, help=p.text["stretch_help"])
    head = Head(p.focus.stack, p.focus.kind, p.focus.layer, p.focus.head)
    chosen = AttentionChoices(drawing, False, stretch)
    shown = attention_view_model(p.trace, head, p.focus.token, chosen, weights_only=True)
    say_row(p, shown)
    place = places(shown)
    with place.picture:
        draw(p, shown)
    with place.sentence:
        shaded_sentence(p, shown)
    with place.numbers, st.expander(p.text["numbers"], key="attention numbers"):
        row_numbers(p.text, shown)
    st.subheader(p.text["section_reading"], anchor=False)
    reading(p, shown)
    p.trace[_queries(p)]


def _queries(p: Page) -> str:
    return f"{p.focus.stack}.layers.{p.focus.layer}.{p.focus.kind}_attention.query"
