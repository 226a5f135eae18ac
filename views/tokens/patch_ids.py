"""The Tokens page of a vision model: a token is a square of pixels, its id computed from them."""

from collections.abc import Callable, Sequence
from functools import partial

import pandas as pd
import streamlit as st

from charts.toolkit.numbers import whole
from transformer.pictures.patch_numbers import N_SPECIAL, ids_of, patches_of
from transformer.pictures.patch_tokenizer import PatchTokenizer
from transformer.text.message import N_
from transformer.text.tokens import Token, TokenSequence
from ui.shell.actions import Actions, SelectChip, SelectToken
from ui.shell.page import Page
from ui.shell.picture import picture_of_patches
from ui.shell.reducer import State
from ui.show.chips import Chip, ChipRow, chips
from ui.show.figures import show_formula, show_snippet, show_source, show_table
from ui.words.texts import as_plain


def rows_of_patches(tokens: TokenSequence, across: int) -> list[range]:
    """Return the tokens' positions: first those before the image, if any, then one row per row of patches."""
    n_tokens, before = len(tokens), sum(token.special for token in tokens)
    return [
        *([range(before)] if before else []),
        *(range(first, first + across) for first in range(before, n_tokens, across)),
    ]


def cards_of_patches(p: Page, below: Callable[[Token], str], hint: Callable[[Token], str]) -> None:
    """Draw every token as a card, the patches arranged as in the image; a click focuses one."""
    tokens = p.trace.tokens(p.focus.stack)
    rows = rows_of_patches(tokens, p.checkpoint.tokenizer.per_row)
    before = sum(token.special for token in tokens)
    cards = [
        Chip(
            token.display,
            below(token),
            "special" if token.special else "word",
            hint=hint(token),
            patch=None if token.special else token.index - before,
        )
        for token in tokens
    ]
    drawn = [
        ChipRow(
            "" if number else p.text["reads"],
            tuple(cards[place] for place in places),
            chosen=places.index(p.focus.token) if p.focus.token in places else None,
        )
        for number, places in enumerate(rows)
    ]
    chips(drawn, key="token cards", means=partial(_follow, rows), picture=picture_of_patches(p.trace))


def patches(p: Page) -> None:
    """Draw every patch with its id; a click focuses it and shows the computation of its id."""
    text, tokenizer, config = p.text, p.checkpoint.tokenizer, p.checkpoint.config
    tokens = p.trace.tokens(p.focus.stack)
    signs = [tokenizer.display(token.id) for token in tokens]
    cards_of_patches(p, below=lambda token: str(token.id), hint=lambda token: signs[token.index])
    token, base = tokens[p.focus.token], config.n_levels
    if token.special:
        st.markdown(text["class_token"].format(token=as_plain(token.display), id=token.id))
    else:
        levels = [tokenizer.signs.index(sign) for sign in tokenizer.display(token.id)]
        powers = [rf"{level} \cdot {base}^{{{len(levels) - 1 - at}}}" for at, level in enumerate(levels)]
        show_formula(
            rf"\text{{id}} = {N_SPECIAL} + {' + '.join(powers)} = {token.id}",
            caption=text["id_caption"].format(patch=as_plain(token.display), pixels=len(levels), levels=base),
        )
    st.markdown(
        text["counts_patches"].format(
            tokens=len(tokens) - 1,
            size=config.picture_size,
            patch=config.patch_size,
            possible=whole(config.vocabulary_size - N_SPECIAL),
            special=N_SPECIAL,
        )
    )
    show_table(
        pd.DataFrame(
            {
                N_("token"): tokens.displays,
                N_("id"): tokens.ids,
                text["shades"]: [
                    "" if token.special else " ".join(str(tokenizer.signs.index(s)) for s in sign)
                    for token, sign in zip(tokens, signs, strict=True)
                ],
            }
        ),
        name="patches",
    )
    show_source(PatchTokenizer, patches_of, ids_of)
    show_snippet(
        "patches",
        p.preamble
        + "\ntokenizer = checkpoint.tokenizer\n"
        + f"ids = tokenizer.encode({p.sentence!r})\n"
        + "print(ids, [tokenizer.display(id) for id in ids], tokenizer.decode(ids))\n",
    )


def _follow(rows: Sequence[range], _state: State, chosen: SelectChip) -> Actions:
    return (SelectToken(rows[chosen.row][chosen.card]),)
