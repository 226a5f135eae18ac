"""The Tokens page of a model that reads pictures: a token is a square of pixels, and its id is made of their shades."""

import pandas as pd
import streamlit as st

from charts.toolkit.numbers import whole
from transformer.pictures.patches import N_SPECIAL, ids_of, patches_of
from transformer.pictures.tokenizer import PatchTokenizer
from transformer.text.message import N_
from ui.shell.page import Page
from ui.show.chips import Chip, ChipRow, chips
from ui.show.figures import show_formula, show_snippet, show_source, show_table
from ui.words.texts import as_plain


def patches(p: Page) -> None:
    """Every patch with its id; a click follows it, and its id is worked out."""
    text, tokenizer, config = p.text, p.checkpoint.tokenizer, p.checkpoint.config
    tokens = p.trace.tokens(p.focus.stack)
    signs = [tokenizer.display(token.id) for token in tokens]
    cards = tuple(
        Chip(token.display, str(token.id), "special" if token.special else "word", hint=sign)
        for token, sign in zip(tokens, signs, strict=True)
    )
    chosen = chips([ChipRow(text["reads"], cards, chosen=p.focus.token)], key="token cards", choose=True)
    if chosen and chosen[1] != p.focus.token:
        p.set_focus(token=chosen[1])
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
