"""Tokens: how text becomes ids, how merges build a word, and what other tokenizers would make of it."""

import pandas as pd
import streamlit as st

from charts.toolkit.numbers import whole
from charts.toolkit.style import three_digits
from transformer.text.byte_pair_merges import merge_steps
from transformer.text.message import N_
from transformer.text.tokenizer import END_ID, SPECIAL_TOKENS, Tokenizer
from ui.shell.focus import fit_trace
from ui.shell.page import Page, page
from ui.shell.page_state import IN_ADDRESS
from ui.show.chips import Chip, ChipRow, chips
from ui.show.figures import show_formula, show_snippet, show_source, show_table
from ui.words.catalogues import said
from ui.words.texts import as_plain, counted
from views.tokens.tokenization import kind_of, merges_of_a_word, token_cards, tokenizers_side_by_side


def show_counts(p: Page) -> None:
    """The ids as the model gets them, and how few tokens the text takes."""
    tokenizer, tokens = p.checkpoint.tokenizer, p.trace.tokens(p.focus.stack)
    ids = [str(token.id) for token in tokens]
    if len(ids) > 12:
        ids = [*ids[:8], r"\dots", ids[-1]]
    listed, size = r",\ ".join(ids), tokenizer.vocabulary_size - 1
    show_formula(rf"\text{{ids}} = ({listed}) \in \{{0, \dots, {size}\}}^{{{len(tokens)}}}")
    n_text = sum(not token.special for token in tokens)
    st.markdown(
        p.text["counts"].format(
            tokens=n_text,
            characters=len(tokens.text),
            bytes=len(tokens.text.encode("utf-8", errors="replace")),
            ratio=three_digits(len(tokens.text) / n_text) if n_text else "0",
            vocabulary=whole(tokenizer.vocabulary_size),
            special=len(SPECIAL_TOKENS),
            merges=whole(len(tokenizer.merges)),
            offset=tokenizer.vocabulary_size - len(tokenizer.merges),
        )
    )


def show_unknown(p: Page) -> None:
    """Any character as bytes, and what a special token is."""
    tokenizer, text = p.checkpoint.tokenizer, p.text
    typed = st.text_input(
        text["character"], value="😀", key="character", help=text["character_help"], width=200, **IN_ADDRESS
    )
    if character := typed.strip()[:1]:
        sequence = tokenizer.sequence(tokenizer.encode(character))
        raw = character.encode("utf-8", errors="replace")
        chips(
            [ChipRow("", tuple(Chip(token.display, str(token.id), kind_of(token)) for token in sequence))],
            key="character tokens",
        )
        st.markdown(
            text["unknown_text"].format(
                character=as_plain(character),
                count=f"{counted(len(raw), 'byte')} ({raw.hex(' ').upper()})",
                back=as_plain(tokenizer.decode(sequence.ids)),
            )
        )
    as_text = tokenizer.encode(SPECIAL_TOKENS[END_ID])
    st.markdown(text["special_text"].format(typed=len(as_text), ids=", ".join(map(str, as_text)), end=END_ID))
    read = [token.id for stack in p.trace.stacks for token in p.trace.tokens(stack)]
    ids = range(len(SPECIAL_TOKENS))
    table = {
        N_("token"): SPECIAL_TOKENS,
        N_("id"): ids,
        text["in_sentence"]: [read.count(id) for id in ids],
        N_("what for"): text["special_uses"],
    }
    show_table(pd.DataFrame(table), name="special-tokens")


with page("tokens", strip=False) as p:
    p.focus, _ = fit_trace(p.focus, p.trace)
    for note in p.trace.notes:
        st.caption(f":material/info: {as_plain(said(note))}")
    token_cards(p)
    show_counts(p)
    st.subheader(p.text["merges"], anchor=False)
    merges_of_a_word(p)
    st.subheader(p.text["compare"], anchor=False)
    tokenizers_side_by_side(p)
    st.subheader(p.text["unknown"], anchor=False)
    show_unknown(p)
    show_source(Tokenizer, merge_steps)
    show_snippet(
        p.preamble
        + "\nfrom transformer.text.byte_pair_merges import merge_steps, readable\n\n"
        + "tokenizer = checkpoint.tokenizer\n"
        + f"ids = tokenizer.encode({p.focus.sentence!r})\n"
        + "print(ids, [tokenizer.display(id) for id in ids], tokenizer.decode(ids))\n"
        + f"for word in tokenizer.words({p.focus.sentence!r}):\n"
        + "    for step in merge_steps(tokenizer, word):\n"
        + "        print(step.rank, [readable(piece) for piece in step.pieces])\n"
    )
