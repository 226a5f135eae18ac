"""A word split by the tokenizer: by merges, step by step, or in one line."""

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from charts.toolkit.numbers import whole
from transformer.text import tokenizations
from transformer.text.byte_pair_merges import merge_steps
from transformer.text.tokenizer import Tokenizer
from ui.page.page import Page, guard
from ui.shell import choice
from ui.shell.fragments import fragment
from ui.show.figures import show_figure
from ui.words.texts import as_plain, count_text, in_code, languages
from views.tokens.token_figures import merge_tree

LONGEST_WORD = 32  # bytes or characters; beyond that the boxes are too narrow to read
FEWER_MERGES = (0, 20, 50, 100, 200, 500, 1000, 2000, 4000, 8000, 16000, 32000, 64000, 128000)


@fragment
def word_being_built(p: Page) -> None:
    """Draw the word of the focused token, or a typed one, from its letters to tokens."""
    with guard():
        tokenizer, text = p.checkpoint.tokenizer, p.text
        sequence = p.trace.tokens(p.focus.stack)
        followed = tokenizations.word_of(tokenizer, sequence, p.focus.token)
        followed = followed or most_divided_word(tokenizer, sequence.text)
        picture = st.container()
        controls = st.container(horizontal=True, vertical_alignment="bottom")
        with controls:
            typed = choice.text(
                text["word"],
                default=_as_typed(p, followed),
                key="word",
                owner=(p.focus.checkpoint, followed),
                help=text["word_help"],
                width=260,
                max_chars=80,
            )
            n_merges = _choose_merges(p) if tokenizer.kind == "BPE" else None
        word = followed if typed == _as_typed(p, followed) else next(iter(tokenizer.words(typed.strip())), "")
        if not word:
            st.caption(text["nothing_typed"])
            return
        if len(word) > LONGEST_WORD:
            length = count_text(len(word), "byte" if tokenizer.alphabet == "byte-level" else "character")
            st.caption(text["too_long"].format(length=length, shown=LONGEST_WORD))
            word = word[:LONGEST_WORD]
        with picture:
            match tokenizer.kind:
                case "BPE":
                    _draw_merges(p, word, n_merges, controls)
                case "WordPiece" | "Unigram":
                    _say_pieces(p, word)
                case _:
                    st.markdown(text["whole_word"].format(word=as_plain(_as_typed(p, word))))


def most_divided_word(tokenizer: Tokenizer, text: str) -> str:
    """Return the longest of the words with the most tokens, used if no word is focused; "" for none."""

    def size(word: str) -> tuple[int, int]:
        text = tokenizer.bytes_of(word).decode("utf-8", errors="replace")
        return len(tokenizer.encode(text, continues=True)), len(word)

    return max(tokenizer.words(text), key=size, default="")


def _as_typed(p: Page, word: str) -> str:
    """Return a word as a user would type it, without the preceding space."""
    return p.checkpoint.tokenizer.readable(word).removeprefix("·")


def _choose_merges(p: Page) -> int:
    total = len(p.checkpoint.tokenizer.merges)
    options = [*(count for count in FEWER_MERGES if count < total), total]
    names = {count: [whole(count), *(whole(count, language=code) for code in languages())] for count in options}
    return choice.one_of(
        p.text["learned"],
        names,
        total,
        key="learned",
        owner=p.focus.checkpoint,
        in_slider=True,
        help=p.text["learned_help"],
        width="stretch",
    )


def _choose_step(p: Page, controls: DeltaGenerator, owner: tuple[object, ...], last: int, *, about: str) -> int:
    """Choose, among the controls, which of the steps 0 … ``last`` is drawn; the last one by default.

    ``about`` explains the steps, on demand.
    """
    if not last:
        return 0
    with controls:
        return choice.slider(
            p.text["step"],
            0,
            last,
            last,
            key="merge step",
            owner=(p.focus.checkpoint, *owner),
            help=about,
            width="stretch",
        )


def _draw_merges(p: Page, word: str, n_merges: int | None, controls: DeltaGenerator) -> None:
    tokenizer, text = p.checkpoint.tokenizer, p.text
    steps = merge_steps(tokenizer, word, n_merges=n_merges)
    last = len(steps) - 1
    shown = _choose_step(p, controls, (word, n_merges), last, about=text["merges_help"])
    if shown == last:
        sentence = _ends_as(p, word, [tokenizer.readable(piece) for piece in steps[-1].pieces])
    else:
        following = steps[shown + 1]
        left, right = (f"`{in_code(tokenizer.readable(piece))}`" for piece in following.merged)
        sentence = text["waiting"].format(rank=whole(following.rank), left=left, right=right)
    st.markdown(f"##### {sentence}")
    show_figure(
        merge_tree(
            [step.pieces for step in steps[: shown + 1]],
            ranks=[step.rank for step in steps[1 : shown + 1]],
            display=tokenizer.readable,
            n_steps=last,
            of_characters=tokenizer.alphabet != "byte-level",
        ),
        name="merges",
        caption=text["merges_caption"],
    )


def _say_pieces(p: Page, word: str) -> None:
    """Write the tokens of the word, and how this tokenizer chooses them."""
    tokenizer = p.checkpoint.tokenizer
    text = tokenizer.bytes_of(word).decode("utf-8", errors="replace")
    pieces = [tokenizer.display(id) for id in tokenizer.encode(text, continues=True)]
    st.markdown(f"##### {_ends_as(p, word, pieces)}")
    st.caption(p.text["how"][tokenizer.kind])


def _ends_as(p: Page, word: str, pieces: list[str]) -> str:
    listed, count = " ".join(f"`{in_code(piece)}`" for piece in pieces), count_text(len(pieces), "token")
    return p.text["end"].format(word=as_plain(_as_typed(p, word)), count=count, pieces=listed)
