"""The sections of the Tokens page: cards, one word, counts, two tokenizers, special tokens."""

from collections.abc import Callable, Sequence
from functools import partial
from operator import itemgetter
from typing import NamedTuple

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from charts.figures.token_boxes import merge_tree, token_lengths
from charts.toolkit.numbers import whole
from transformer.runs.next_sentence import is_pair, letters_of
from transformer.runs.typed_tokens import added_tokens, prompt_tokens, special_uses, text_of, typed_tokens
from transformer.text import tokenizations
from transformer.text.byte_pair_merges import merge_steps
from transformer.text.tokenizer import Tokenizer
from transformer.text.tokens import Token, TokenSequence
from ui.compute.loading import checkpoint_names, load_checkpoint, readable_config
from ui.page.page import Page, guard
from ui.shell import choice
from ui.shell.fragments import fragment
from ui.shell.strip import choose_token
from ui.show.chips import Chip, ChipRow, chips
from ui.show.figures import show_figure
from ui.words.texts import Marked, PageText, code, common, count_text, languages, listed, page_texts

LONGEST_WORD = 32  # bytes or characters; beyond that the boxes are too narrow to read
FEWER_MERGES = (0, 20, 50, 100, 200, 500, 1000, 2000, 4000, 8000, 16000, 32000, 64000, 128000)
COMPARED_MERGES = (100, 500, 2000)
MOST_IDS = 12  # in the formula


# ---- cards ----------------------------------------------------------------------------------------------------------


def kind_of(token: Token) -> str:
    """Return the tone of a token's card."""
    if token.special or token.display == f"⟨{token.id}⟩":
        return "special"
    if "⟨" in token.display and "⟨" not in token.text:
        return "byte"
    return "word" if token.starts_word else "part"


def token_cards(p: Page) -> None:
    """Draw every token that the model read, with its id; a click focuses it."""
    tokenizer, letters = p.checkpoint.tokenizer, letters_of(p.trace) if is_pair(p.trace) else ()
    prompt, typed = prompt_tokens(p.trace, p.focus.stack), typed_tokens(p.trace, p.focus.stack)
    frame = {token.index for token in prompt} - {token.index for token in typed}

    def card(token: Token) -> Chip:
        kind, raw = kind_of(token), tokenizer.token_bytes[token.id].hex(" ").upper()
        number = f"{token.id} · {letters[token.index]}" if letters else str(token.id)
        hint = p.words(
            "hint", index=str(token.index), id=str(token.id), bytes=f"bytes {raw}" if raw else p.words("no_bytes")
        )
        return Chip(token.display, number, "frame" if token.index in frame and kind != "special" else kind, hint=hint)

    rows = []
    for stack in p.trace.stacks:
        tokens = p.trace.tokens(stack)
        # A decoder reads the target behind a start token; as on the other pages, its row is named after the target.
        title = common(f"page.{tokens.name}") if len(p.trace.stacks) > 1 else p.words("reads")
        chosen = p.focus.token if stack == p.focus.stack else None
        rows.append(ChipRow(title, tuple(map(card, tokens)), chosen=chosen))
    legend = {tone: p.words(f"legend_{tone}") for tone in ("word", "part", "byte", "special", "frame")}
    if any(chip.tone == "word" and chip.text.startswith("·") for row in rows for chip in row.chips):
        legend["word"] = p.words("legend_word_space")
    if type(tokenizer) is not Tokenizer:  # that of this library knows every byte
        legend["special"] = p.words("legend_special_unknown")
    chips(rows, key="token cards", legend=legend, on_click=partial(_follow, tuple(p.trace.stacks)))
    if letters:
        p.say("segments", small=True, end=tokenizer.display(p.checkpoint.special.end))


def _follow(stacks: Sequence[str], row: int, card: int) -> None:
    choose_token(card, stacks[row])


# ---- one word -------------------------------------------------------------------------------------------------------


@fragment
def word_being_built(p: Page) -> None:
    """Draw the word of the focused token, or a typed one, from its letters to tokens."""
    with guard():
        tokenizer, sequence = p.checkpoint.tokenizer, p.trace.tokens(p.focus.stack)
        followed = tokenizations.word_of(tokenizer, sequence, p.focus.token)
        followed = followed or most_divided(tokenizer, sequence.text)
        picture = st.container()
        controls = st.container(horizontal=True, vertical_alignment="bottom")
        with controls:
            typed = choice.text(
                p.text["word"], as_typed(p, followed), key="word", owner=(p.focus.checkpoint, followed),
                help=p.text["word_help"], width=260, max_chars=80,
            )  # fmt: skip
            n_merges = _choose_merges(p) if tokenizer.kind == "BPE" else None
        word = followed if typed == as_typed(p, followed) else next(iter(tokenizer.words(typed.strip())), "")
        if not word:
            p.say("nothing_typed", small=True)
            return
        if len(word) > LONGEST_WORD:
            unit = "byte" if tokenizer.alphabet == "byte-level" else "character"
            p.say("too_long", small=True, length=count_text(len(word), unit), shown=LONGEST_WORD)
            word = word[:LONGEST_WORD]
        with picture:
            match tokenizer.kind:
                case "BPE":
                    draw_merges(p, word, n_merges, controls)
                case "WordPiece" | "Unigram":
                    text = tokenizer.bytes_of(word).decode("utf-8", errors="replace")
                    _say_end(p, word, [tokenizer.display(id) for id in tokenizer.encode(text, continues=True)])
                    p.say(f"how.{tokenizer.kind}", small=True)
                case _:
                    p.say("whole_word", word=as_typed(p, word))


def most_divided(tokenizer: Tokenizer, text: str) -> str:
    """Return the longest of the words with the most tokens, used if no word is focused; "" for none."""

    def size(word: str) -> tuple[int, int]:
        text = tokenizer.bytes_of(word).decode("utf-8", errors="replace")
        return len(tokenizer.encode(text, continues=True)), len(word)

    return max(tokenizer.words(text), key=size, default="")


def as_typed(p: Page, word: str) -> str:
    """Return a word as a user would type it, without the preceding space."""
    return p.checkpoint.tokenizer.readable(word).removeprefix("·")


def _choose_merges(p: Page) -> int:
    total = len(p.checkpoint.tokenizer.merges)
    options = [*(count for count in FEWER_MERGES if count < total), total]
    names = {count: [whole(count), *(whole(count, language=code) for code in languages())] for count in options}
    return choice.one_of(
        p.text["learned"], names, total, key="learned", owner=p.focus.checkpoint, in_slider=True,
        help=p.text["learned_help"], width="stretch",
    )  # fmt: skip


def draw_merges(p: Page, word: str, n_merges: int | None, controls: DeltaGenerator) -> None:
    """Draw the merges of a word up to a chosen step, by default all, and say what follows."""
    tokenizer = p.checkpoint.tokenizer
    steps = p.calc(merge_steps, tokenizer, word, n_merges=n_merges, name="steps", shows=("",))
    shown = last = len(steps) - 1
    if last:
        with controls:
            shown = choice.slider(
                p.text["step"], 0, last, last, key="merge step", owner=(p.focus.checkpoint, word, n_merges),
                help=p.text["merges_help"], width="stretch",
            )  # fmt: skip
    if shown == last:
        _say_end(p, word, [tokenizer.readable(piece) for piece in steps[-1].pieces])
    else:
        left, right = map(tokenizer.readable, steps[shown + 1].merged)
        st.markdown(f"##### {p.md('waiting', rank=steps[shown + 1].rank, left=left, right=right)}")
    figure = merge_tree(
        [step.pieces for step in steps[: shown + 1]],
        ranks=[step.rank for step in steps[1 : shown + 1]],
        display=tokenizer.readable,
        n_steps=last,
        of_characters=tokenizer.alphabet != "byte-level",
    )
    show_figure(figure, name="merges", caption=p.md("merges_caption"))


def _say_end(p: Page, word: str, pieces: list[str]) -> None:
    key = "end" if len(pieces) > 1 else "end_whole"
    st.markdown(f"##### {p.md(key, word=as_typed(p, word), count=len(pieces), pieces=pieces)}")


# ---- counts ---------------------------------------------------------------------------------------------------------


def show_counts(p: Page) -> None:
    """Show the ids that the model receives, and the number of tokens that the text needs."""
    tokenizer, trace, stack = p.checkpoint.tokenizer, p.trace, p.focus.stack
    p.calc(tokenizer.decode, p.calc(tokenizer.encode, p.sentence, name="ids", shows=("",)), name="text", shows=("",))
    read, typed = trace.tokens(stack), typed_tokens(trace, stack)
    ids = [str(token.id) for token in read]
    if len(ids) > MOST_IDS:
        ids = [*ids[:8], r"\dots", ids[-1]]
    listed_ids, size = r",\ ".join(ids), tokenizer.vocabulary_size - 1
    p.formula(rf"\text{{ids}} = ({listed_ids}) \in \{{0, \dots, {size}\}}^{{{len(read)}}}")
    said = [added(p)]
    if written := len(read) - len(prompt_tokens(trace, stack)):
        said.append(p.md("written_given" if trace.forced else "written", tokens=written))
    st.markdown(" ".join((*said, *target_frame(p))))
    text, n_typed, n_merges = text_of(typed), sum(not token.special for token in typed), len(tokenizer.merges)
    p.say(
        "counts" if type(tokenizer) is Tokenizer else "counts_other",
        tokens=n_typed,
        characters=len(text),
        bytes=len(text.encode("utf-8", errors="replace")),
        ratio=len(text) / n_typed if n_typed else 0,
        vocabulary=tokenizer.vocabulary_size,
        special=len(tokenizer.special),
        merges=n_merges,
        offset=tokenizer.vocabulary_size - n_merges,
        how=p.md(f"how.{tokenizer.kind}", merges=n_merges),
    )


def added(p: Page) -> Marked:
    """Say which special tokens were added around the text; a missing start token is visible here."""
    prompt, typed = prompt_tokens(p.trace, p.focus.stack), typed_tokens(p.trace, p.focus.stack)
    if len(typed) < len(prompt):
        last = len(prompt) - 1
        return p.md("added_chat", before=typed[0].index, after=last - typed[-1].index)
    found = added_tokens(p.trace, p.focus.stack)
    said = [
        p.md(f"added_{where}", tokens=listed(Marked(f"{code(token.display)} (id {token.id})") for token in tokens))
        for where in ("before", "between", "after")
        if (tokens := getattr(found, where))
    ]
    return p.md("added", what=listed(said)) if said else p.md("added_none")


def target_frame(p: Page) -> list[Marked]:
    """Say where a target's start and end token come from; nothing without an encoder."""
    trace = p.trace
    if trace.source is None or trace.target is None:
        return []
    said, following = [p.md("target_start", start=trace.target[0].display)], trace.prediction
    if not trace.forced and following is not None and following[-1].id == p.checkpoint.special.end:
        said.append(p.md("target_end", end=following[-1].display))
    return said


# ---- two tokenizers -------------------------------------------------------------------------------------------------


class _Way(NamedTuple):
    name: Callable[[PageText], str]
    cut: Callable[[str], TokenSequence]


def tokenizers_side_by_side(p: Page) -> None:
    """Draw the same sentence, split by two tokenizers that the reader chooses."""
    ways, texts, chosen = _ways_to_cut(p), page_texts(p.name), []
    codes = list(ways)
    names = {way: [ways[way].name(text) for text in texts] for way in codes}
    for column, key, first in zip(st.columns(2), ("first", "second"), (0, min(2, len(ways) - 1)), strict=True):
        with column:
            more = {"key": f"{key} tokenizer", "owner": p.focus.checkpoint, "in_list": True}
            chosen.append(choice.one_of(p.text[key], names, codes[first], **more))
    sentence = text_of(typed_tokens(p.trace, p.focus.stack))
    if not sentence:
        p.say("nothing_to_cut", small=True)
        return
    cuts = {names[way][0]: ways[way].cut(sentence) for way in dict.fromkeys(chosen)}
    caption = "compare_caption_bytes" if type(p.checkpoint.tokenizer) is Tokenizer else "compare_caption"
    show_figure(token_lengths(cuts), name="two-tokenizers", caption=p.md(caption))
    rows = [
        {
            "tokenizer": name,
            "tokens": len(tokens),
            "in the vocabulary": sum(token.id >= 0 for token in tokens),
            "characters per token": len(sentence) / len(tokens),
        }
        for name, tokens in cuts.items()
    ]
    p.table(rows, name="token-counts")


def _ways_to_cut(p: Page) -> dict[str, _Way]:
    """Return tokenizers by code: ``checkpoint <name>``, ``<number> merges``, "characters" or "words"."""
    here, tokenizer = p.checkpoint, p.checkpoint.tokenizer

    def named(name: str, cut: Callable[[str], TokenSequence]) -> _Way:
        return _Way(lambda text: text["other"].format(name=name), cut)

    def with_count(key: str, number: int, cut: Callable[[str], TokenSequence]) -> _Way:
        return _Way(lambda text: text[key].format(name=here.name, count=whole(number, language=text.language)), cut)

    def fewer(number: int) -> Callable[[str], TokenSequence]:
        return lambda sentence: p.calc(tokenizations.with_merges, tokenizer, sentence, number, name=f"with_{number}")

    def whole_of(name: str) -> Callable[[str], TokenSequence]:
        return lambda sentence: (other := load_checkpoint(name).tokenizer).sequence(other.encode(sentence))

    total, own = len(tokenizer.merges), whole_of(here.name)
    whole_of_it = with_count("this", total, own) if tokenizer.kind == "BPE" else named(here.name, own)
    ways = {f"checkpoint {here.name}": whole_of_it}
    if tokenizer.kind == "BPE" and tokenizer.alphabet == "byte-level":
        for number in COMPARED_MERGES:
            if number < total:
                ways[f"{number} merges"] = with_count("fewer", number, fewer(number))
        ways["0 merges"] = _Way(itemgetter("bytes"), fewer(0))
    ways["characters"] = _Way(itemgetter("characters"), partial(tokenizations.characters, tokenizer))
    ways["words"] = _Way(itemgetter("words"), partial(tokenizations.words, tokenizer))
    others = [name for name in checkpoint_names() if name != here.name and readable_config(name)]
    return ways | {f"checkpoint {name}": named(name, whole_of(name)) for name in others}


# ---- unknown and special --------------------------------------------------------------------------------------------


def odd_character(p: Page) -> None:
    """Show how the tokenizer encodes a character that the vocabulary may lack."""
    tokenizer = p.checkpoint.tokenizer
    typed = choice.text(p.text["character"], "😀", key="character", help=p.text["character_help"], width=200)
    if not (character := typed.strip()[:1]):
        return
    sequence, raw = tokenizer.sequence(tokenizer.encode(character)), character.encode("utf-8", errors="replace")
    cards = tuple(Chip(token.display, str(token.id), kind_of(token)) for token in sequence)
    chips([ChipRow("", cards)], key="character tokens")
    back = tokenizer.decode(sequence.ids)
    p.say(
        "unknown_text" if back == raw.decode("utf-8", errors="replace") else "lost_text",
        character=character,
        count=Marked(f"{count_text(len(raw), 'byte')} ({raw.hex(' ').upper()})"),
        space=p.md("space_in_front") if tokenizer.space_in_front else "",
        back=back or p.words("nothing"),
    )


def special_tokens(p: Page) -> None:
    """List the special tokens with a role, and the others that this sentence has."""
    tokenizer, uses, config = p.checkpoint.tokenizer, special_uses(p.trace), p.checkpoint.config
    special = tokenizer.special
    if not uses:
        p.say("special_none")
        return
    example = next(id for id in (special.end, special.start, *uses) if id is not None)
    name = tokenizer.display(example)
    as_text = tokenizer.encode(name)
    said = p.md("special_text", name=name, typed=len(as_text), ids=", ".join(map(str, as_text)), id=str(example))
    blanks = special.mask is not None and not config.has_decoder and not config.n_classes
    st.markdown(f"{said} {p.md('special_mask')}" if blanks else said)
    read = [token.id for stack in p.trace.stacks for token in p.trace.tokens(stack)]
    rows = [
        {
            "token": tokenizer.display(id),
            "id": id,
            "in_sentence": read.count(id),
            "what for": "; ".join(p.words(f"special_uses.{role}") for role in roles or ("other",)),
        }
        for id, roles in uses.items()
    ]
    p.table(rows, name="special-tokens")
