"""Tokens: how text becomes ids, how a word is split, and other tokenizers' results."""

import streamlit as st

from transformer.runs.typed_tokens import most_divided_word
from ui.page.page import Page, page
from ui.shell.fitting import fit_trace
from views.tokens import tokens_sections as sections


def begins(p: Page) -> tuple[str, int]:
    """Begin at a word that consists of several tokens."""
    stack = p.trace.stacks[0]
    return stack, most_divided_word(p.trace.tokens(stack))


with page("tokens", strip=False, begins=begins) as p:
    p.focus, _ = fit_trace(p.focus, p.trace)
    p.say_notes()
    sections.token_cards(p)
    sections.word_being_built(p)
    with st.container(key="token counts"):  # lessons cover it
        sections.show_counts(p)
    st.subheader(p.text["compare"], anchor=False)
    sections.tokenizers_side_by_side(p)
    st.subheader(p.text["unknown"], anchor=False)
    sections.odd_character(p)
    sections.special_tokens(p)
    p.code(type(p.checkpoint.tokenizer))
