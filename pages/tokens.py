"""Tokens: how text becomes ids, how a word is cut step by step, and what other tokenizers would make of it."""

import streamlit as st

from charts.toolkit.numbers import whole
from charts.toolkit.style import three_digits
from transformer.text.best_path import path_steps
from transformer.text.byte_pair_merges import merge_steps
from transformer.text.longest_match import match_steps
from transformer.text.tokenizer import Tokenizer
from ui.shell.fitting import fit_trace
from ui.shell.page import Page, page
from ui.show.figures import show_formula, show_snippet, show_source
from ui.words.catalogues import said as in_language
from ui.words.texts import as_plain, counted
from views.tokens.patch_ids import patches
from views.tokens.special_tokens import added_tokens, odd_character, special_tokens
from views.tokens.tokenization import (
    prompt_tokens,
    token_cards,
    tokenizers_side_by_side,
    typed_text,
    typed_tokens,
)
from views.tokens.word_being_built import word_being_built


def show_counts(p: Page) -> None:
    """The ids as the model gets them, and how few tokens the text takes."""
    tokenizer, read = p.checkpoint.tokenizer, p.trace.tokens(p.focus.stack)
    ids = [str(token.id) for token in read]
    if len(ids) > 12:
        ids = [*ids[:8], r"\dots", ids[-1]]
    listed, size = r",\ ".join(ids), tokenizer.vocabulary_size - 1
    show_formula(rf"\text{{ids}} = ({listed}) \in \{{0, \dots, {size}\}}^{{{len(read)}}}")
    said = [added_tokens(p)]
    if written := len(read) - len(prompt_tokens(p)):
        key = "written_given" if p.trace.forced else "written"
        said.append(p.text[key].format(tokens=counted(written, "token")))
    st.markdown(" ".join(said))
    n_text, text = sum(not token.special for token in typed_tokens(p)), typed_text(p)
    n_merges = len(tokenizer.merges)
    how = p.text["how"][tokenizer.kind].format(merges=whole(n_merges))
    st.markdown(
        p.text["counts" if type(tokenizer) is Tokenizer else "counts_other"].format(
            tokens=n_text,
            characters=len(text),
            bytes=len(text.encode("utf-8", errors="replace")),
            ratio=three_digits(len(text) / n_text) if n_text else "0",
            vocabulary=whole(tokenizer.vocabulary_size),
            special=len(tokenizer.special),
            merges=whole(n_merges),
            offset=tokenizer.vocabulary_size - n_merges,
            how=how,
        )
    )


def snippet_of(p: Page) -> str:
    """Python that cuts the same sentence, step by step."""
    tokenizer, sentence = p.checkpoint.tokenizer, p.focus.sentence
    cut, shown = {
        "WordPiece": ("longest_match import match_steps", "[(step.start, step.found) for step in match_steps({})]"),
        "Unigram": ("best_path import kept, path_steps", "[(step.piece, step.score) for step in kept(path_steps({}))]"),
    }.get(tokenizer.kind, ("byte_pair_merges import merge_steps", "[step.pieces for step in merge_steps({})]"))
    return (
        p.preamble
        + f"\nfrom transformer.text.{cut}\n\n"
        + "tokenizer = checkpoint.tokenizer\n"
        + f"ids = tokenizer.encode({sentence!r})\n"
        + "print(ids, [tokenizer.display(id) for id in ids], tokenizer.decode(ids))\n"
        + f"for word in tokenizer.words({sentence!r}):\n"
        + f"    print({shown.format('tokenizer, word')})\n"
    )


STEPS = {"BPE": merge_steps, "WordPiece": match_steps, "Unigram": path_steps}

with page("tokens", strip=False) as p:
    p.focus, _ = fit_trace(p.focus, p.trace)
    for note in p.trace.notes:
        st.caption(f":material/info: {as_plain(in_language(note))}")
    if p.reads_pictures:
        patches(p)
        p.finish()
    token_cards(p)
    with st.container(key="token counts"):  # lessons cover it
        show_counts(p)
    st.subheader(p.text["merges"], anchor=False)
    word_being_built(p)
    st.subheader(p.text["compare"], anchor=False)
    tokenizers_side_by_side(p)
    st.subheader(p.text["unknown"], anchor=False)
    odd_character(p)
    special_tokens(p)
    tokenizer = p.checkpoint.tokenizer
    show_source(type(tokenizer), STEPS.get(tokenizer.kind, type(tokenizer).words))
    show_snippet("tokens", snippet_of(p))
