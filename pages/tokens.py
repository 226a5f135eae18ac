"""Tokens: how text becomes ids, how a word is split, and other tokenizers' results."""

import streamlit as st

from charts.toolkit.words import localize
from transformer.text.byte_pair_merges import merge_steps
from ui.page.page import Page, page
from ui.shell.fitting import fit_trace
from ui.show.figures import show_snippet, show_source
from ui.words.texts import as_plain
from views.tokens.counts import show_counts, snippet_of
from views.tokens.special_tokens import odd_character, special_tokens
from views.tokens.tokenization import token_cards, tokenizers_side_by_side
from views.tokens.tokens_view_model import TokensViewModel
from views.tokens.word_being_built import word_being_built


def begins(p: Page) -> tuple[str, int]:
    """Begin at a word that consists of several tokens."""
    stack = p.trace.stacks[0]
    return stack, TokensViewModel(p.trace, stack).divided_token


with page("tokens", strip=False, begins=begins) as p:
    p.focus, _ = fit_trace(p.focus, p.trace)
    for note in p.trace.notes:
        st.caption(f":material/info: {as_plain(localize(note))}")
    view_model = TokensViewModel(p.trace, p.focus.stack, p.focus.token)
    token_cards(p, view_model)
    word_being_built(p)
    with st.container(key="token counts"):  # lessons cover it
        show_counts(view_model, p.text)
    st.subheader(p.text["compare"], anchor=False)
    tokenizers_side_by_side(p, view_model)
    st.subheader(p.text["unknown"], anchor=False)
    odd_character(p)
    special_tokens(p, view_model)
    tokenizer = p.checkpoint.tokenizer
    show_source(type(tokenizer), merge_steps if tokenizer.kind == "BPE" else type(tokenizer).words)
    show_snippet("tokens", snippet_of(p))
