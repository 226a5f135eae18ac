"""What the model answers when its tokens stand in another order, or in none."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import streamlit as st

from charts.toolkit.style import three_digits
from transformer import Edit, Trace, trace_of
from transformer.layers.positional_encodings import reordered_positions, without_positions
from transformer.predictions.answer_probabilities import Answer, answer_of
from transformer.runs.inputs import prompt_ids
from transformer.runs.run import Run
from transformer.text.tokens import Token, TokenSequence
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
from ui.words.catalogues import said
from ui.words.texts import as_plain, numbered, page_texts
from views.positions.looks import looks, most_changed_head

_MAX_IN_A_LINE = 12  # tokens as cards, each with its position
_REORDERED = ("sinusoidal", "learned", "rotary", "relative")


def can_reorder(p: Page) -> bool:
    """Whether this model's positions can be changed apart from its tokens."""
    return p.checkpoint.config.positions in _REORDERED


def first_view(p: Page) -> str:
    """What the page opens with: where nothing is added, what is done instead comes first, both side by side."""
    return "heatmap" if p.checkpoint.config.positions == "rotary" else "order"


def stack_looked_at(p: Page) -> str | None:
    """The one stack whose tokens this view is about, or ``None`` in the other views."""
    asked = choice.value("positions view", first_view(p))
    names = {"order", "view_order", *(text["view_order"] for text in page_texts(p.text.name))}
    return _stack(p) if can_reorder(p) and asked in names else None


def place_looked_at(p: Page) -> tuple[str, int]:
    """The stack and the token to mark in the strip."""
    if stack_looked_at(p) is None:
        return p.focus.stack, p.focus.token
    before, movable, _ = _read(p)
    if len(movable) < 2:
        return p.focus.stack, p.focus.token
    return _stack(p), _followed(p, before.tokens(_stack(p)), movable)


def choose_change(p: Page) -> None:
    """What is done to the positions, as a list."""
    changes = ["swap", "shuffle", "reverse", "remove"]
    if p.checkpoint.config.kind == "encoder-decoder":
        changes.append("remove_all")
    chosen_option(p.text, "order", changes, key="order change", in_list=True, width=200, label_visibility=labels())


def another_order(p: Page) -> None:
    """What the model then reads, what it answers, beside what it answered before, and what one token looks at."""
    text, stack = p.text, _stack(p)
    before, movable, n_read = _read(p)
    tokens = before.tokens(stack)
    if len(movable) < 2:
        st.markdown(text["too_short"])
        return
    change = choice.value("order change", "swap")
    order = None if change.startswith("remove") else _order(p, change, tokens, movable, n_read)
    after = _with_positions(_run(p), before.stacks if change == "remove_all" else (stack,), order)
    _show_readings(p, tokens.tokens[:n_read], order, pair=_pair(p, tokens, movable) if change == "swap" else None)
    _show_answers(p, answer_of(before), answer_of(after))
    _show_looks(p, before, after, _followed(p, tokens, movable), order, n_read)
    for note in (note for note in after.notes if note not in p.trace.notes):  # the page has said those already
        st.caption(f":material/info: {as_plain(said(note))}")
    hint = f"{text['swap_hint']} " if change == "swap" else ""
    st.caption(hint + text["order_text"].format(what=text[f"what_{p.checkpoint.config.positions}"]))


def _stack(p: Page) -> str:
    """The stack that reads what was typed."""
    return "encoder" if p.checkpoint.config.has_encoder else "decoder"


def _run(p: Page) -> Run:
    return replace(p.run, source_pads=0)


def _read(p: Page) -> tuple[Trace, list[int], int]:
    """(the model's run as it is, the tokens that may move, how many tokens were read)."""
    before = load_trace(_run(p))
    tokens = before.tokens(_stack(p))
    encoder = p.checkpoint.config.has_encoder
    n_read = len(tokens) if encoder else len(prompt_ids(p.checkpoint, p.focus.sentence))
    return before, [token.index for token in tokens.tokens[:n_read] if not token.special], n_read


def _pair(p: Page, tokens: TokenSequence, movable: Sequence[int]) -> tuple[int, int]:
    """The two tokens that change places: a pair of words at first, then those that were clicked."""
    task = start_of(p.focus.sentence, p.checkpoint.config.task_prefixes).rstrip()
    read = np.cumsum([0, *(0 if token.special else len(token.text) for token in tokens)])
    own = [index for index in movable if read[index] >= len(task)]  # not those of a task's prefix
    words = [index for index in own if any(letter.isalnum() for letter in tokens[index].text)]
    # Neither "the" nor "on" where there is something else: a word of three letters that stands here only once.
    spelt = [tokens[index].text.strip().lower() for index in words]
    telling = [index for index, word in zip(words, spelt, strict=True) if len(word) > 2 and spelt.count(word) == 1]
    start = next(group for group in (telling, words, movable) if len(group) >= 2)
    defaults = start[0] if len(start) < 4 else start[1], start[-1]
    names = {index: [numbered(index, tokens[index].display)] for index in movable}
    first, second = (
        choice.read_option(f"swap {name}", names, default, owner=tokens.ids)
        for name, default in zip(("first", "second"), defaults, strict=True)
    )
    return first, second


def _followed(p: Page, tokens: TokenSequence, movable: Sequence[int]) -> int:
    """The token that was clicked above, if it is one that was read; else one that changes places."""
    focus, stack = p.focus, _stack(p)
    page_state.belongs_to(FIRST_CHOSEN, (focus.checkpoint, focus.sentence))
    chosen = focus.token or choice.is_on(FIRST_CHOSEN)
    if chosen and focus.stack == stack and focus.token <= movable[-1]:
        return focus.token
    # Behind a causal mask the later one of the two has more to look at.
    return (max if stack == "decoder" else min)(_pair(p, tokens, movable))


def _with_positions(run: Run, stacks: Sequence[str], order: Sequence[int] | None) -> Trace:
    """The run again, with the positions of ``stacks`` in another order, or (``order=None``) without them."""
    model = run.checkpoint.model

    def edits_of(stack: str) -> tuple[Edit, ...]:
        return without_positions(model, stack) if order is None else reordered_positions(model, stack, order)

    def make() -> Trace:
        return trace_of(replace(run, edits=tuple(edit for stack in stacks for edit in edits_of(stack))))

    name = ("positions", *stacks, None if order is None else tuple(order))
    trace = store.get(run, name, make, wait="wait.again")
    trace.check_finite()
    return trace


def _order(p: Page, change: str, tokens: TokenSequence, movable: Sequence[int], n_read: int) -> list[int]:
    """``order[i]``: the position that token i gets. Special tokens keep theirs."""
    order = np.arange(n_read)
    places = np.array(movable)
    if change == "swap":
        chosen = list(_pair(p, tokens, movable))
        order[chosen] = order[chosen[::-1]]
    elif change == "reverse":
        order[places] = places[::-1]
    else:
        asked = choice.value("shuffles")
        count = int(asked) if asked.isascii() and asked.isdecimal() and len(asked) < 6 else 0
        again = {"on_click": choice.put, "args": ("shuffles", count + 1)}
        st.button(p.text["again"], icon=":material/shuffle:", **again)
        order[places] = np.random.default_rng(count).permutation(places)
    return order.tolist()


def _show_readings(
    p: Page, tokens: Sequence[Token], order: Sequence[int] | None, *, pair: tuple[int, int] | None
) -> None:
    """The tokens in the order of their positions, before and after; those that moved are marked. A click on a token of
    the upper row makes it one of the two that change places."""
    moved = [token.index for token in tokens if order is None or order[token.index] != token.index]
    before = tuple(
        Chip(token.display, str(token.index), "marked" if pair and token.index in moved else "plain")
        for token in tokens
    )
    if order is None:
        after = tuple(Chip(token.display, p.text["no_place"], "marked") for token in tokens)
    else:
        by_place = sorted(tokens, key=lambda token: order[token.index])
        after = tuple(
            Chip(token.display, str(place), "marked" if token.index != place else "plain")
            for place, token in enumerate(by_place)
        )
    rows = [ChipRow(p.text["before"], before), ChipRow(p.text["after"], after)]
    if len(tokens) > _MAX_IN_A_LINE:  # the strip above shows the old order; the answers are to stay on the screen
        rows = rows[1:]
    if pair is None:
        chips(rows, key="order tokens")
        return
    movable = [[None if token.special else token.index for token in row] for row in (tokens, by_place)][-len(rows) :]
    chips(rows, key="order tokens", means=partial(_take, movable, pair))


def _take(movable: Sequence[Sequence[int | None]], pair: tuple[int, int], _state: State, chosen: SelectChip) -> Actions:
    """It changes places with the one that was clicked before it, the second of the ``pair`` that change places now;
    ``movable``: the tokens of both rows."""
    token = movable[chosen.row][chosen.card]
    if token is None or token in pair:
        return ()
    return SetChoice("swap first", (pair[1],)), SetChoice("swap second", (token,))


def _show_looks(p: Page, before: Trace, after: Trace, token: int, order: Sequence[int] | None, n_read: int) -> None:
    """What one token looks at in the first layer, before and after, in the head where this has changed most."""
    stack, text = _stack(p), p.text
    tokens = before.tokens(stack).tokens[:n_read]
    rows = [trace.attention(stack, 0, "self").weights[:, token, :n_read] for trace in (before, after)]
    if stack == "decoder":  # what stands behind it is hidden from it, before and after
        tokens, rows = tokens[: token + 1], [row[:, : token + 1] for row in rows]
    head, name = most_changed_head(*rows), tokens[token].display
    place = text["at_none"] if order is None else text["at"].format(place=order[token])
    st.markdown(text["looks"].format(token=as_plain(name), head=head))
    show_figure(
        looks(
            rows[0][head],
            after=rows[1][head],
            tokens=tokens,
            rows=(
                text["looks_row"].format(when=text["before"], place=text["at"].format(place=token)),
                text["looks_row"].format(when=text["after"], place=place),
            ),
            bar=text["looks_bar"],
        ),
        name="looks-before-and-after",
        caption=text["looks_caption"],
        alt=text["looks_alt"].format(token=name),
    )


def _show_answers(p: Page, before: Answer, after: Answer) -> None:
    """Both answers, large, with their probabilities, and whether they differ."""
    text = p.text
    with st.container(border=True, horizontal=True, gap="medium", key="order answers"):
        for name, answer in (("before", before), ("after", after)):
            with st.container(width="stretch", gap=None):
                sure = text["sure"].format(probability=three_digits(answer.probability)) if answer.parts else ""
                st.caption(" · ".join(filter(None, (f"{text['answers']} {text[name]}", sure))))
                written = " ".join(answer.text.split()) or " ".join(part.display for part in answer.parts)
                words = as_plain(written) or "–"
                st.markdown(f"#### {words}" if name == "before" else f"#### :primary[{words}]")
    if not before.parts:
        st.caption(text["asked_nothing"])
    else:
        same = before.text == after.text
        st.caption(f"{text['same']} {text['same_note']}" if same else text["changed"])
