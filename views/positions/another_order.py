"""The model's predictions when its tokens get other positions, or none."""

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import streamlit as st

from charts.toolkit.style import percent_digits, three_digits
from charts.toolkit.words import localize
from transformer import Trace, trace_of
from transformer.heads.sentence_through_training import shared_words
from transformer.interventions.experiment import answer_under, same_tokens
from transformer.predictions.answer_probabilities import Answer, prediction_rows, read_answer
from transformer.runs.decoding_strategies import Greedy
from transformer.runs.inputs import prompt_ids
from transformer.text.tokens import Token
from ui.compute.loading import load_trace
from ui.compute.store import store
from ui.page.page import Page
from ui.shell import choice
from ui.shell.choice import chosen_option
from ui.shell.focus import start_of
from ui.shell.presentation.presenter import is_presenting, labels
from ui.show.chips import Chip, ChipRow, chips
from ui.show.figures import show_figure
from ui.words.texts import PageText, as_plain, number_text, page_texts
from views.positions.attention_change_figure import attention_change
from views.positions.positions_view_model import REORDERED, NewOrder, ReorderedInput

_SEARCHED = 32  # most tokens of an input whose most telling pair is searched


def can_reorder(p: Page) -> bool:
    """Return whether this model's positions can be changed independently of its tokens."""
    return len(_kinds(p)) == 1 and _kinds(p)[0] in REORDERED


def _kinds(p: Page) -> tuple[str, ...]:
    """Return how the stack that reads the typed text encodes positions."""
    config = p.checkpoint.config
    return config.kinds_in("encoder" if config.has_encoder else "decoder")


def needs(p: Page) -> tuple[str, ...]:
    """Return what can be chosen: a token in every section but this one, whose cards are the tokens."""
    asked = choice.value("positions view", "order")
    names = {"order", "view_order", *(text["view_order"] for text in page_texts(p.text.name))}
    return () if can_reorder(p) and asked in names else ("token",)


def choose_change(p: Page) -> None:
    """Draw the list of changes to the positions."""
    chosen_option(p.text, "order", _changes(p), key="order change", in_list=True, width=250, label_visibility=labels())


def _changes(p: Page) -> list[str]:
    """Return the changes, the default first."""
    changes = ["swap", "shuffle", "reverse", "remove"]
    return [*changes, "remove_all"] if p.checkpoint.config.kind == "encoder-decoder" else changes


def another_order(p: Page) -> None:
    """Show what the model reads, its output before and after, and what one token attends to."""
    text, read = p.text, _read(p)
    if len(read.movable) < 2:
        st.markdown(text["too_short"])
        return
    change, pair = choice.value("order change", _changes(p)[0]), _pair(p, read)
    shuffle = _shuffle(text) if change == "shuffle" else 0
    new = read.new_order(change, pair=pair, shuffle=shuffle)
    after = _run_with(p, new)
    _show_both(p, read, new, after)
    _show_attention(read, new, after, text)
    for note in (note for note in after.notes if note not in p.trace.notes):  # the page has already shown those
        st.caption(f":material/info: {as_plain(localize(note))}")
    answers, of_text = (read_answer(one) for one in (read.before, after)), _text_share(read.before) is not None
    hints = [text["same_note"]] if not of_text and _are_alike(*answers) else []
    hints += [text["swap_hint"]] if new.pair else []
    hints += [text["causal_note"]] if read.stack == "decoder" and new.order is not None else []
    if hints:
        st.caption(" ".join(hints))


def _read(p: Page) -> ReorderedInput:
    before, config = load_trace(replace(p.run, source_pads=0)), p.checkpoint.config
    n_read = len(before.tokens("encoder")) if config.has_encoder else len(prompt_ids(p.checkpoint, p.sentence))
    return ReorderedInput(before, n_read)


def _pair(p: Page, read: ReorderedInput) -> tuple[int, int]:
    """Return the two tokens to be swapped: a pair of words by default, then those that were clicked."""
    defaults = store.get(p.run, "telling pair", lambda: _telling_pair(p, read))
    tokens = read.before.tokens(read.stack)
    names = {index: [number_text(index, tokens[index].display)] for index in read.movable}
    first, second = (
        choice.read_option(f"swap {name}", names, default, owner=tokens.ids)
        for name, default in zip(("first", "second"), defaults, strict=True)
    )
    return first, second


def _telling_pair(p: Page, read: ReorderedInput) -> tuple[int, int]:
    """Return the pair of words whose swap changes the output most clearly.

    This is the pair with the most probable other output or, if no swap changes it, the one that moves its probability
    most. Of a model that continues texts, only the next token is compared, or the text itself if it ends there. A
    third-party model and a long input, for which each try takes long, get the first pair.
    """
    pairs = read.pairs(start_of(p.sentence, p.checkpoint.config.task_prefixes).rstrip())
    if p.checkpoint.is_guest or len(read.tokens) > _SEARCHED:
        return pairs[0]
    strategy = Greedy(1) if p.checkpoint.config.kind == "decoder-only" else p.run.strategy
    answer = partial(answer_under, p.checkpoint, p.run.sentence, strategy=strategy)  # without a recorded pass
    before, ends_at_once = answer(), _text_share(read.before) is not None

    def clarity(pair: tuple[int, int]) -> tuple[bool, float]:
        edits = read.new_order("swap", pair=pair).edits(p.checkpoint)
        if ends_at_once:
            return False, -(_text_share(same_tokens(read.before, edits)) or 0.0)
        after = answer(edits)
        if not (before.parts and after.parts):
            return False, 0.0
        if after.text != before.text:
            return True, after.probability
        return False, abs(after.probability - before.probability)

    return max(pairs, key=clarity)


def _run_with(p: Page, new: NewOrder) -> Trace:
    """Run the model again with other positions."""
    run = replace(p.run, source_pads=0)
    trace = store.get(
        run,
        ("positions", *new.stacks, new.order),
        lambda: trace_of(replace(run, edits=new.edits(run.checkpoint))),
        wait="wait.again",
    )
    trace.check_finite()
    return trace


def _shuffle(text: PageText) -> int:
    """Draw the button that shuffles again; return the number of the shuffle."""
    asked = choice.value("shuffles")
    count = int(asked) if asked.isascii() and asked.isdecimal() and len(asked) < 6 else 0
    st.button(text["again"], icon=":material/shuffle:", on_click=choice.put, args=("shuffles", count + 1))
    return count


def _show_both(p: Page, read: ReorderedInput, new: NewOrder, changed: Trace) -> None:
    """Say how this model encodes the order and whether the output changes; show what is read and written."""
    text, without = p.text, "" if new.order is not None else "_without"
    before, after = read_answer(read.before), read_answer(changed)
    shares, same = None, before.text == after.text
    if (share := _text_share(read.before)) is not None:  # of the same tokens, even if the changed model continues them
        shares = share, _text_share(same_tokens(read.before, new.edits(p.checkpoint))) or 0.0
    if shares is not None:
        said = text[f"text_{'less' if shares[1] < shares[0] else 'more'}{without}"]
    elif before.parts:
        said = text[f"{'same' if same else 'changed'}{without}"]
    else:
        said = text["no_blank"]
    numbers = "" if without else f" :gray[:small[{text['numbers']}]]"
    with st.container(gap=None):
        st.markdown(f"#### {text[f'answer_{_kinds(p)[0]}']}")
        st.markdown(f"**{said}**{numbers}" if before.parts else said)
    rows, movable = _readings(read, new, text)
    with st.container(gap=None if is_presenting() else "xsmall", key="order answers"):
        for place, (name, answer, other) in enumerate((("before", before, after), ("after", after, before))):
            # a click on a token makes it one of the two that are swapped
            on_click = partial(_take, [movable[place]], new.pair) if new.pair else None
            chips([rows[place]], key=f"order tokens {name}", on_click=on_click)
            if shares is not None:
                st.markdown(f"#### {text['text_share'].format(probability=percent_digits(shares[place]))}")
                continue
            sure = text["sure"].format(probability=three_digits(answer.probability)) if answer.parts else ""
            st.markdown(f"#### → {_written(answer, other)} :small[:gray[{sure}]]")


def _are_alike(before: Answer, after: Answer) -> bool:
    """Return whether there is an output and it stays the same."""
    return bool(before.parts) and before.text == after.text


def _text_share(trace: Trace) -> float | None:
    """Return how probable a typed text is per token where a model that continues texts ends it at once."""
    question = prediction_rows(trace)
    if not question.everywhere or not trace.checkpoint.config.has_decoder:
        return None
    return math.exp(question.chosen(question.log_probabilities(trace)).mean())


def _readings(
    read: ReorderedInput, new: NewOrder, text: PageText
) -> tuple[tuple[ChipRow, ChipRow], tuple[list[int | None], list[int | None]]]:
    """Return the tokens in the order of their positions, before and after, as cards and by their index.

    Those that moved are marked; a special token, which cannot be moved, has no index.
    """
    tokens, order, pair = read.tokens, new.order, new.pair
    before = tuple(
        Chip(token.display, str(token.index), "marked" if pair and token.index in pair else "plain") for token in tokens
    )
    by_position = tokens if order is None else sorted(tokens, key=lambda token: order[token.index])
    if order is None:
        after = tuple(Chip(token.display, text["no_position"], "marked") for token in tokens)
    else:
        after = tuple(
            Chip(token.display, str(position), "marked" if token.index != position else "plain")
            for position, token in enumerate(by_position)
        )
    own, others = ([None if token.special else token.index for token in row] for row in (tokens, by_position))
    return (ChipRow(text["before"], before), ChipRow(text["after"], after)), (own, others)


def _written(answer: Answer, other: Answer) -> str:
    """Return an output as Markdown, words that the other output lacks in colour."""
    written = " ".join(answer.text.split()) or " ".join(part.display for part in answer.parts)
    compared = " ".join(other.text.split()) or " ".join(part.display for part in other.parts)
    pieces = []
    for piece, shared in shared_words(written, compared):
        word = piece.lstrip()
        pieces.append(piece[: len(piece) - len(word)] + (as_plain(word) if shared else f":orange[{as_plain(word)}]"))
    return "".join(pieces).strip() or "–"


def _take(movable: Sequence[Sequence[int | None]], pair: tuple[int, int], row: int, card: int) -> None:
    """Swap the clicked token with the one that was clicked before it, the second of ``pair``.

    Args:
        movable: The tokens of both rows.
        pair: The two tokens that are currently swapped.
    """
    token = movable[row][card]
    if token is not None and token not in pair:
        choice.put("swap first", pair[1])
        choice.put("swap second", token)


def _show_attention(read: ReorderedInput, new: NewOrder, after: Trace, text: PageText) -> None:
    """Draw the attention of one token in the first layer, before and after, in the head that changes most."""
    token, change = new.followed, read.attention_change(after, new.followed)
    name = read.tokens[token].display
    position = text["at_none"] if new.order is None else text["at"].format(position=new.order[token])
    title = text["attends_without" if new.order is None else "attends"]
    st.markdown(title.format(token=as_plain(name), head=change.head))
    show_figure(
        attention_change(
            change.before,
            after=change.after,
            tokens=change.tokens,
            rows=(
                text["attends_row"].format(when=text["before"], position=text["at"].format(position=token)),
                text["attends_row"].format(when=text["after"], position=position),
            ),
            bar=text["attends_bar"],
            positions=_positions(new, change.tokens),
        ),
        name="looks-before-and-after",
        caption=text["attends_caption" if new.order is None else "attends_caption_moved"],
        alt=text["attends_alt"].format(token=name),
    )


def _positions(new: NewOrder, tokens: Sequence[Token]) -> list[str]:
    """Return the position of every token before and after, "5 → 8" if it moved."""
    order = new.order or range(len(tokens))
    return [
        str(token.index) if order[token.index] == token.index else f"{token.index} → {order[token.index]}"
        for token in tokens
    ]
