"""Tokens as cards, and the same text split by two tokenizers."""

from collections.abc import Callable, Sequence
from functools import partial
from operator import itemgetter
from typing import NamedTuple

import pandas as pd
import streamlit as st

from charts.toolkit.numbers import whole
from transformer import Checkpoint
from transformer.text import tokenizations
from transformer.text.tokenizer import Tokenizer
from transformer.text.tokens import Token, TokenSequence
from ui.compute.loading import checkpoint_names, config_of, load_checkpoint
from ui.compute.store import store
from ui.page.page import Page
from ui.shell.actions import Actions, SelectChip, SelectToken
from ui.shell.choice import one_of
from ui.shell.reducer import State
from ui.shell.strip import choose_token
from ui.show.chips import Chip, ChipRow, chips
from ui.show.figures import show_figure, show_table
from ui.words.texts import PageText, common, in_code, page_texts
from views.tokens.token_figures import token_lengths
from views.tokens.tokens_view_model import TokensViewModel

COMPARED_MERGES = (100, 500, 2000)


def kind_of(token: Token) -> str:
    """Return the tone of a token's card."""
    if token.special or token.display == f"⟨{token.id}⟩":
        return "special"
    if "⟨" in token.display and "⟨" not in token.text:
        return "byte"
    return "word" if token.starts_word else "part"


def token_cards(p: Page, view_model: TokensViewModel) -> None:
    """Draw every token that the model read, with its id; a click focuses it."""
    text, tokenizer = p.text, p.checkpoint.tokenizer
    typed = {token.index for token in view_model.typed_tokens}
    framed = len(view_model.prompt_tokens) if view_model.is_chat else 0

    def tone(token: Token) -> str:
        kind = kind_of(token)
        return "frame" if token.index < framed and token.index not in typed and kind != "special" else kind

    letters = view_model.sentence_letters

    def number(token: Token) -> str:
        return f"{token.id} · {letters[token.index]}" if letters else str(token.id)

    rows = []
    for stack in p.trace.stacks:
        cards = tuple(
            Chip(token.display, number(token), tone(token), hint=_hint(text, tokenizer, token))
            for token in p.trace.tokens(stack)
        )
        # A decoder reads the target behind a start token; as on the other pages, its row is named after the target.
        title = common(f"page.{p.trace.tokens(stack).name}") if len(p.trace.stacks) > 1 else text["reads"]
        rows.append(ChipRow(title, cards, chosen=p.focus.token if stack == p.focus.stack else None))
    legend = {tone: text[f"legend_{tone}"] for tone in ("word", "part", "byte", "special", "frame")}
    if any(chip.tone == "word" and chip.text.startswith("·") for row in rows for chip in row.chips):
        legend["word"] = text["legend_word_space"]
    if type(tokenizer) is not Tokenizer:  # that of this library knows every byte
        legend["special"] = text["legend_special_unknown"]
    chips(rows, key="token cards", legend=legend, means=partial(_follow, tuple(p.trace.stacks)))
    if letters:
        st.caption(text["segments"].format(end=in_code(tokenizer.display(p.checkpoint.special.end))))


def _follow(stacks: Sequence[str], state: State, chosen: SelectChip) -> Actions:
    return choose_token(state, SelectToken(chosen.card, stacks[chosen.row]))


def _hint(text: PageText, tokenizer: Tokenizer, token: Token) -> str:
    raw = tokenizer.token_bytes[token.id].hex(" ").upper()
    return text["hint"].format(index=token.index, id=token.id, bytes=f"bytes {raw}" if raw else text["no_bytes"])


def tokenizers_side_by_side(p: Page, view_model: TokensViewModel) -> None:
    """Draw the same sentence, split by two tokenizers that the reader chooses."""
    ways = _ways_to_cut(p)
    codes, texts = list(ways), page_texts(p.text.name)
    names = {code: [way.name(text) for text in texts] for code, way in ways.items()}
    chosen = []
    for column, key, index in zip(st.columns(2), ("first", "second"), (0, min(2, len(ways) - 1)), strict=True):
        with column:
            chosen.append(
                one_of(p.text[key], names, codes[index], key=f"{key} tokenizer", owner=p.focus.checkpoint, in_list=True)
            )
    sentence = view_model.typed_text
    if not sentence:
        st.caption(p.text["nothing_to_cut"])
        return
    cuts = {names[code][0]: ways[code].cut(sentence) for code in dict.fromkeys(chosen)}
    caption = p.text["compare_caption_bytes" if type(p.checkpoint.tokenizer) is Tokenizer else "compare_caption"]
    show_figure(token_lengths(cuts), name="two-tokenizers", caption=caption)
    show_table(
        pd.DataFrame(
            {
                "tokenizer": list(cuts),
                "tokens": [len(tokens) for tokens in cuts.values()],
                "in the vocabulary": [sum(token.id >= 0 for token in tokens) for tokens in cuts.values()],
                "characters per token": [len(sentence) / len(tokens) for tokens in cuts.values()],
            }
        ),
        name="token-counts",
    )


class _Way(NamedTuple):
    name: Callable[[PageText], str]
    cut: Callable[[str], TokenSequence]


def _ways_to_cut(p: Page) -> dict[str, _Way]:
    """Return tokenizers by code: ``checkpoint <name>``, ``<number> merges``, "characters" or "words"."""
    here = p.checkpoint
    tokenizer, total = here.tokenizer, len(here.tokenizer.merges)

    def fewer(number: int) -> Callable[[str], TokenSequence]:
        return lambda sentence: store.get(
            here, ("merges", sentence, number), lambda: tokenizations.with_merges(tokenizer, sentence, number)
        )

    def of(name: str) -> Callable[[str], TokenSequence]:
        return lambda sentence: _sequence(load_checkpoint(name), sentence)

    def with_count(key: str, number: int, cut: Callable[[str], TokenSequence]) -> _Way:
        return _Way(lambda text: text[key].format(name=here.name, count=whole(number, language=text.language)), cut)

    def named(name: str, cut: Callable[[str], TokenSequence]) -> _Way:
        return _Way(lambda text: text["other"].format(name=name), cut)

    own = partial(_sequence, here)
    whole_of_it = with_count("this", total, own) if tokenizer.kind == "BPE" else named(here.name, own)
    ways = {f"checkpoint {here.name}": whole_of_it}
    if tokenizer.kind == "BPE" and tokenizer.alphabet == "byte-level":
        for number in COMPARED_MERGES:
            if number < total:
                ways[f"{number} merges"] = with_count("fewer", number, fewer(number))
        ways["0 merges"] = _Way(itemgetter("bytes"), fewer(0))
    ways["characters"] = _Way(itemgetter("characters"), partial(tokenizations.characters, tokenizer))
    ways["words"] = _Way(itemgetter("words"), partial(tokenizations.words, tokenizer))
    for name in checkpoint_names():
        if name != here.name and _opens(name):
            ways[f"checkpoint {name}"] = named(name, of(name))
    return ways


def _opens(name: str) -> bool:
    try:
        config_of(name)
    except (OSError, ValueError):
        return False
    return True


def _sequence(checkpoint: Checkpoint, sentence: str) -> TokenSequence:
    return checkpoint.tokenizer.sequence(checkpoint.tokenizer.encode(sentence))
