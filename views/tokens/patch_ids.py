"""The Tokens page of a vision model: a token is a square of pixels, its id computed from them."""

from collections.abc import Sequence
from functools import partial

import pandas as pd
import streamlit as st

from charts.toolkit.numbers import whole
from transformer.pictures.patch_numbers import N_SPECIAL, ids_of, patches_of
from transformer.pictures.patch_tokenizer import PatchTokenizer
from transformer.text.message import N_
from ui.shell.actions import Actions, SelectChip, SelectToken
from ui.shell.page import Page
from ui.shell.reducer import State
from ui.show.chips import Chip, ChipRow, chips
from ui.show.figures import show_formula, show_snippet, show_source, show_table
from ui.words.texts import as_plain


def rows_of_patches(n_tokens: int, across: int) -> list[range]:
    """Return the tokens' positions: first those before the image, then one row per row of patches."""
    before = n_tokens - across**2
    return [range(before), *(range(first, first + across) for first in range(before, n_tokens, across))]


def patches(p: Page) -> None:
    """Draw every patch with its id; a click focuses it and shows the computation of its id."""
    text, tokenizer, config = p.text, p.checkpoint.tokenizer, p.checkpoint.config
    tokens = p.trace.tokens(p.focus.stack)
    signs = [tokenizer.display(token.id) for token in tokens]
    cards = [
        Chip(
            token.display,
            str(token.id),
            "special" if token.special else "word",
            hint=sign,
            pixels=token.pixels or None,
        )
        for token, sign in zip(tokens, signs, strict=True)
    ]
    rows = rows_of_patches(len(tokens), config.picture_size // config.patch_size)
    drawn = [
        ChipRow(
            "" if number else text["reads"],
            tuple(cards[place] for place in places),
            chosen=places.index(p.focus.token) if p.focus.token in places else None,
        )
        for number, places in enumerate(rows)
    ]
    chips(drawn, key="token cards", means=partial(_follow, rows))
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
        + f"ids = tokenizer.encode({p.focus.sentence!r})\n"
        + "print(ids, [tokenizer.display(id) for id in ids], tokenizer.decode(ids))\n",
    )


def _follow(rows: Sequence[range], _state: State, chosen: SelectChip) -> Actions:
    return (SelectToken(rows[chosen.row][chosen.card]),)
