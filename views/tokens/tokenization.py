"""What the Tokens page shows: cards of tokens, a word being built, and one text cut in two ways."""

from collections.abc import Callable

import pandas as pd
import streamlit as st

from charts.figures.tokens import merge_tree, token_lengths
from charts.toolkit.numbers import whole
from transformer import Checkpoint
from transformer.analysis import tokenizations
from transformer.text.byte_pair_merges import MergeStep, merge_steps, readable
from transformer.text.message import N_
from transformer.text.tokenizer import Tokenizer
from transformer.text.tokens import Token, TokenSequence
from ui.compute.loading import checkpoint_names, config_of, load_checkpoint
from ui.compute.store import store
from ui.shell.page import Page, guard
from ui.shell.page_state import IN_ADDRESS, belongs_to
from ui.shell.selectors import settle
from ui.show.chips import Chip, ChipRow, chips
from ui.show.figures import show_figure, show_table
from ui.words.texts import PageText, as_plain, counted, languages, page_texts

LONGEST_WORD = 32  # bytes; beyond that the boxes are too narrow to read
FEWER_MERGES = (0, 20, 50, 100, 200, 500, 1000, 2000, 4000, 8000, 16000, 32000)
COMPARED_MERGES = (100, 500, 2000)


def kind_of(token: Token) -> str:
    """The tone of a token's card."""
    if token.special:
        return "special"
    if "⟨" in token.display and "⟨" not in token.text:
        return "byte"
    return "word" if token.starts_word else "part"


def token_cards(p: Page) -> None:
    """Every token that the model read, with its id; a click follows it."""
    text, tokenizer = p.text, p.checkpoint.tokenizer
    rows = []
    for stack in p.trace.stacks:
        cards = tuple(
            Chip(token.display, str(token.id), kind_of(token), hint=_hint(text, tokenizer, token))
            for token in p.trace.tokens(stack)
        )
        title = text["reads"] if stack == "encoder" else text["given" if p.trace.forced else "writes"]
        rows.append(ChipRow(title, cards, chosen=p.focus.token if stack == p.focus.stack else None))
    legend = {tone: text[f"legend_{tone}"] for tone in ("word", "part", "byte", "special")}
    if chosen := chips(rows, key="token cards", legend=legend, choose=True):
        stack, token = p.trace.stacks[chosen[0]], chosen[1]
        if (stack, token) != (p.focus.stack, p.focus.token):
            p.set_focus(**({} if stack == p.focus.stack else {"stack": stack, "kind": "self"}), token=token)


def _hint(text: PageText, tokenizer: Tokenizer, token: Token) -> str:
    raw = tokenizer.token_bytes[token.id].hex(" ").upper()
    return text["hint"].format(index=token.index, id=token.id, bytes=f"bytes {raw}" if raw else text["no_bytes"])


@st.fragment
def merges_of_a_word(p: Page) -> None:
    """The word of the followed token, or one that is typed, from bytes to tokens, one merge after the other."""
    with guard():
        tokenizer, text = p.checkpoint.tokenizer, p.text
        sequence = p.trace.tokens(p.focus.stack)
        followed = tokenizations.word_of(tokenizer, sequence, p.focus.token)
        followed = followed or next(iter(tokenizer.words(sequence.text)), "")
        belongs_to("word", (p.focus.checkpoint, followed), default=_as_typed(followed))
        with st.container(horizontal=True, vertical_alignment="bottom"):
            typed = st.text_input(
                text["word"],
                value=_as_typed(followed),
                key="word",
                help=text["word_help"],
                width=260,
                max_chars=80,
                **IN_ADDRESS,
            )
            n_merges = _choose_merges(p)
        word = followed if typed == _as_typed(followed) else next(iter(tokenizer.words(typed.strip())), "")
        if not word:
            st.caption(text["nothing_typed"])
            return
        if len(word) > LONGEST_WORD:
            st.caption(text["too_long"].format(bytes=len(word), shown=LONGEST_WORD))
            word = word[:LONGEST_WORD]
        _draw_merges(p, word, merge_steps(tokenizer, word, n_merges=n_merges), n_merges)


def _as_typed(word: str) -> str:
    """A word of the byte alphabet as one would type it: without the space in front."""
    return readable(word).removeprefix("·")


def _choose_merges(p: Page) -> int:
    total = len(p.checkpoint.tokenizer.merges)
    options = [*(number for number in FEWER_MERGES if number < total), total]
    belongs_to("learned", p.focus.checkpoint, default=total)
    settle(
        "learned",
        {count: [whole(count, language=code) for code in (p.text.language, *languages())] for count in options},
    )
    return st.select_slider(
        p.text["learned"],
        options,
        value=total,
        key="learned",
        format_func=whole,
        help=p.text["learned_help"],
        width="stretch",
        **IN_ADDRESS,
    )


def _draw_merges(p: Page, word: str, steps: list[MergeStep], n_merges: int) -> None:
    text, last = p.text, len(steps) - 1
    shown = last
    if last:
        belongs_to("merge step", (p.focus.checkpoint, word, n_merges), default=last)
        shown = st.slider(text["step"], 0, last, last, key="merge step", **IN_ADDRESS)
    following = steps[shown + 1] if shown < last else None
    if following is None:
        pieces = " ".join(f"`{_code(readable(piece))}`" for piece in steps[-1].pieces)
        count = counted(len(steps[-1].pieces), "token")
        sentence = text["end"].format(word=as_plain(_as_typed(word)), count=count, pieces=pieces)
    else:
        left, right = (f"`{_code(readable(piece))}`" for piece in following.merged)
        sentence = text["waiting"].format(rank=whole(following.rank), left=left, right=right)
    st.markdown(sentence)
    show_figure(
        merge_tree(
            [step.pieces for step in steps[: shown + 1]],
            ranks=[step.rank for step in steps[1 : shown + 1]],
            display=readable,
            n_steps=last,
        ),
        name="merges",
        caption=text["merges_caption"],
    )


def _code(piece: str) -> str:
    """A piece between backticks: a backtick would end the code."""
    return piece.replace("`", "ˋ")


def tokenizers_side_by_side(p: Page) -> None:
    """The same sentence, cut by two tokenizers of one's choice."""
    ways = _ways_to_cut(p, p.text)
    names = list(ways)
    in_all_languages = zip(*(_ways_to_cut(p, text) for text in page_texts(p.text.name)), strict=True)
    words = dict(zip(names, in_all_languages, strict=True))
    chosen = []
    for column, key, index in zip(st.columns(2), ("first", "second"), (0, min(2, len(names) - 1)), strict=True):
        belongs_to(f"{key} tokenizer", p.focus.checkpoint, default=names[index])
        settle(f"{key} tokenizer", words)
        chosen.append(column.selectbox(p.text[key], names, index=index, key=f"{key} tokenizer", **IN_ADDRESS))
    sentence = p.trace.tokens(p.focus.stack).text
    if not sentence:
        st.caption(p.text["nothing_to_cut"])
        return
    cuts = {name: ways[name](sentence) for name in dict.fromkeys(chosen)}
    show_figure(token_lengths(cuts), name="two-tokenizers", caption=p.text["compare_caption"])
    show_table(
        pd.DataFrame(
            {
                N_("tokenizer"): list(cuts),
                N_("tokens"): [len(tokens) for tokens in cuts.values()],
                N_("in the vocabulary"): [sum(token.id >= 0 for token in tokens) for tokens in cuts.values()],
                N_("characters per token"): [len(sentence) / len(tokens) for tokens in cuts.values()],
            }
        ),
        name="token-counts",
    )


def _ways_to_cut(p: Page, text: PageText) -> dict[str, Callable[[str], TokenSequence]]:
    """Name → function from a text to its tokens."""
    here = p.checkpoint
    tokenizer, total = here.tokenizer, len(here.tokenizer.merges)

    def fewer(number: int) -> Callable[[str], TokenSequence]:
        return lambda sentence: store.get(
            here, ("merges", sentence, number), lambda: tokenizations.with_merges(tokenizer, sentence, number)
        )

    def of(name: str) -> Callable[[str], TokenSequence]:
        return lambda sentence: _sequence(load_checkpoint(name), sentence)

    ways = {
        text["this"].format(name=here.name, count=whole(total, language=text.language)): lambda sentence: _sequence(
            here, sentence
        )
    }
    for number in COMPARED_MERGES:
        if number < total:
            ways[text["fewer"].format(name=here.name, count=whole(number, language=text.language))] = fewer(number)
    ways[text["bytes"]] = fewer(0)
    ways[text["characters"]] = lambda sentence: tokenizations.characters(tokenizer, sentence)
    ways[text["words"]] = lambda sentence: tokenizations.words(tokenizer, sentence)
    for name in checkpoint_names():
        if name != here.name and _opens(name):
            ways[text["other"].format(name=name)] = of(name)
    return ways


def _opens(name: str) -> bool:
    try:
        config_of(name)
    except (OSError, ValueError):
        return False
    return True


def _sequence(checkpoint: Checkpoint, sentence: str) -> TokenSequence:
    return checkpoint.tokenizer.sequence(checkpoint.tokenizer.encode(sentence))
