"""The model's predictions when its tokens get other positions, or none."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import streamlit as st

from charts.toolkit.style import three_digits
from transformer import Trace, trace_of
from transformer.predictions.answer_probabilities import Answer, read_answer
from transformer.runs.inputs import prompt_ids
from ui.compute.loading import load_trace
from ui.compute.store import store
from ui.shell import choice, page_state
from ui.shell.actions import Actions, SelectChip, SetChoice
from ui.shell.choice import chosen_option
from ui.shell.focus import start_of
from ui.shell.page import Page
from ui.shell.presentation.presenter import labels
from ui.shell.reducer import State
from ui.shell.strip import FIRST_CHOSEN
from ui.show.chips import Chip, ChipRow, chips
from ui.show.figures import show_figure
from ui.words.catalogues import translate
from ui.words.texts import PageText, as_plain, number_text, page_texts
from views.positions.attention_change_figure import attention_change
from views.positions.positions_view_model import REORDERED, NewOrder, ReorderedInput

_MAX_IN_A_LINE = 12  # tokens as cards, each with its position


def can_reorder(p: Page) -> bool:
    """Return whether this model's positions can be changed independently of its tokens."""
    return p.checkpoint.config.positions in REORDERED


def followed_stack(p: Page) -> str | None:
    """Return the one stack whose tokens this section is about, or ``None`` in the other sections."""
    asked = choice.value("positions view", "order")
    names = {"order", "view_order", *(text["view_order"] for text in page_texts(p.text.name))}
    return _read(p).stack if can_reorder(p) and asked in names else None


def followed_token(p: Page) -> tuple[str, int]:
    """Return the stack and the token to mark in the strip."""
    if followed_stack(p) is None:
        return p.focus.stack, p.focus.token
    read = _read(p)
    if len(read.movable) < 2:
        return p.focus.stack, p.focus.token
    return read.stack, _followed(p, read, _pair(p, read))


def choose_change(p: Page) -> None:
    """Draw the list of changes to the positions."""
    changes = ["swap", "shuffle", "reverse", "remove"]
    if p.checkpoint.config.kind == "encoder-decoder":
        changes.append("remove_all")
    chosen_option(p.text, "order", changes, key="order change", in_list=True, width=250, label_visibility=labels())


def another_order(p: Page) -> None:
    """Show what the model reads, its output before and after, and what one token attends to."""
    text, read = p.text, _read(p)
    if len(read.movable) < 2:
        st.markdown(text["too_short"])
        return
    change, pair = choice.value("order change", "swap"), _pair(p, read)
    shuffle = _shuffle(text) if change == "shuffle" else 0
    new = read.new_order(change, pair=pair, shuffle=shuffle, followed=_followed(p, read, pair))
    after = _run_with(p, new)
    _show_readings(read, new, text)
    _show_outputs(read_answer(read.before), read_answer(after), text)
    _show_attention(read, new, after, text)
    for note in (note for note in after.notes if note not in p.trace.notes):  # the page has already shown those
        st.caption(f":material/info: {as_plain(translate(note))}")
    hint = f"{text['swap_hint']} " if new.pair else ""
    st.caption(hint + text["order_text"].format(what=text[f"what_{p.checkpoint.config.positions}"]))


def _read(p: Page) -> ReorderedInput:
    before, config = load_trace(replace(p.run, source_pads=0)), p.checkpoint.config
    n_read = len(before.tokens("encoder")) if config.has_encoder else len(prompt_ids(p.checkpoint, p.focus.sentence))
    return ReorderedInput(before, n_read)


def _pair(p: Page, read: ReorderedInput) -> tuple[int, int]:
    """Return the two tokens to be swapped: a pair of words by default, then those that were clicked."""
    defaults = read.telling_pair(start_of(p.focus.sentence, p.checkpoint.config.task_prefixes).rstrip())
    tokens = read.before.tokens(read.stack)
    names = {index: [number_text(index, tokens[index].display)] for index in read.movable}
    first, second = (
        choice.read_option(f"swap {name}", names, default, owner=tokens.ids)
        for name, default in zip(("first", "second"), defaults, strict=True)
    )
    return first, second


def _followed(p: Page, read: ReorderedInput, pair: tuple[int, int]) -> int:
    """Return the token that was clicked in the strip if it is part of the input; else one of ``pair``."""
    focus = p.focus
    page_state.belongs_to(FIRST_CHOSEN, (focus.checkpoint, focus.sentence))
    chosen = focus.token or choice.is_on(FIRST_CHOSEN)
    if chosen and focus.stack == read.stack and focus.token <= read.movable[-1]:
        return focus.token
    return read.new_order("swap", pair=pair).followed


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


def _show_readings(read: ReorderedInput, new: NewOrder, text: PageText) -> None:
    """Show the tokens in the order of their positions, before and after; those that moved are marked.

    A click on a token makes it one of the two that are swapped.
    """
    tokens, order, pair = read.tokens, new.order, new.pair
    before = tuple(
        Chip(token.display, str(token.index), "marked" if pair and token.index in pair else "plain") for token in tokens
    )
    if order is None:
        after = tuple(Chip(token.display, text["no_position"], "marked") for token in tokens)
    else:
        by_position = sorted(tokens, key=lambda token: order[token.index])
        after = tuple(
            Chip(token.display, str(position), "marked" if token.index != position else "plain")
            for position, token in enumerate(by_position)
        )
    rows = [ChipRow(text["before"], before), ChipRow(text["after"], after)]
    if len(tokens) > _MAX_IN_A_LINE:  # the strip above shows the old order, and the outputs should stay visible
        rows = rows[1:]
    if pair is None:
        chips(rows, key="order tokens")
        return
    movable = [[None if token.special else token.index for token in row] for row in (tokens, by_position)]
    chips(rows, key="order tokens", means=partial(_take, movable[-len(rows) :], pair))


def _take(movable: Sequence[Sequence[int | None]], pair: tuple[int, int], _state: State, chosen: SelectChip) -> Actions:
    """Swap the clicked token with the one that was clicked before it, the second of ``pair``.

    Args:
        movable: The tokens of both rows.
        pair: The two tokens that are currently swapped.
    """
    token = movable[chosen.row][chosen.card]
    if token is None or token in pair:
        return ()
    return SetChoice("swap first", (pair[1],)), SetChoice("swap second", (token,))


def _show_attention(read: ReorderedInput, new: NewOrder, after: Trace, text: PageText) -> None:
    """Draw the attention of one token in the first layer, before and after, in the head that changes most."""
    token, change = new.followed, read.attention_change(after, new.followed)
    name = read.tokens[token].display
    position = text["at_none"] if new.order is None else text["at"].format(position=new.order[token])
    st.markdown(text["attends"].format(token=as_plain(name), head=change.head))
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
        ),
        name="looks-before-and-after",
        caption=text["attends_caption"],
        alt=text["attends_alt"].format(token=name),
    )


def _show_outputs(before: Answer, after: Answer, text: PageText) -> None:
    """Write both outputs, large, with their probabilities, and whether they differ."""
    with st.container(border=True, horizontal=True, gap="medium", key="order answers"):
        for name, answer in (("before", before), ("after", after)):
            with st.container(width="stretch", gap=None):
                sure = text["sure"].format(probability=three_digits(answer.probability)) if answer.parts else ""
                st.caption(" · ".join(filter(None, (f"{text['outputs']} {text[name]}", sure))))
                written = " ".join(answer.text.split()) or " ".join(part.display for part in answer.parts)
                words = as_plain(written) or "–"
                st.markdown(f"#### {words}" if name == "before" else f"#### :primary[{words}]")
    if not before.parts:
        st.caption(text["no_blank"])
    else:
        same = before.text == after.text
        st.caption(f"{text['same']} {text['same_note']}" if same else text["changed"])
