"""What the model answers when its tokens stand in another order, or in none."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import streamlit as st

from charts.toolkit.style import three_digits
from transformer import Edit, Trace, trace_of
from transformer.analysis.answers.answer_probabilities import Answer, answer_of
from transformer.analysis.position_edits import reordered_positions, without_positions
from transformer.runs.inputs import prompt_ids
from transformer.runs.run import Run
from transformer.text.tokens import TokenSequence
from ui.compute.loading import load_trace
from ui.compute.store import store
from ui.shell import page_state
from ui.shell.page import Page
from ui.shell.selectors import chosen_option, one_of
from ui.show.chips import Chip, ChipRow, chips
from ui.words.catalogues import said
from ui.words.texts import as_plain, numbered


def another_order(p: Page) -> None:
    """Choose other positions; see what the model then reads, and what it answers, beside what it answered before."""
    text, config = p.text, p.checkpoint.config
    stack = "encoder" if config.has_encoder else "decoder"
    run = replace(p.run, source_pads=0)
    before = load_trace(run)
    tokens = before.tokens(stack)
    n_read = len(tokens) if config.has_encoder else len(prompt_ids(p.checkpoint, p.focus.sentence))
    movable = [token.index for token in tokens.tokens[:n_read] if not token.special]
    if len(movable) < 2:
        st.markdown(text["too_short"])
        return
    st.markdown(text["order_text"].format(what=text[f"what_{config.positions}"]))
    changes = ["swap", "shuffle", "reverse", "remove", *(["remove_all"] if len(before.stacks) > 1 else [])]
    change = chosen_option(text, "order", changes, key="order change", wrap=True)
    order = None if change.startswith("remove") else _order(p, change, tokens, movable, n_read)
    stacks = before.stacks if change == "remove_all" else (stack,)
    after = _with_positions(run, stacks, order)
    _show_readings(p, tokens.tokens[:n_read], order)
    _show_answers(p, answer_of(before), answer_of(after))
    for note in after.notes:
        st.caption(f":material/info: {as_plain(said(note))}")


def _with_positions(run: Run, stacks: Sequence[str], order: Sequence[int] | None) -> Trace:
    """The run again, with the positions of ``stacks`` in another order, or (``order=None``) without them."""
    model = run.checkpoint.model

    def edits_of(stack: str) -> tuple[Edit, ...]:
        return without_positions(model, stack) if order is None else reordered_positions(model, stack, order)

    def make() -> Trace:
        return trace_of(replace(run, edits=tuple(edit for stack in stacks for edit in edits_of(stack))))

    name = ("positions", *stacks, None if order is None else tuple(order))
    return store.get(run, name, make, wait="wait.again")


def _order(p: Page, change: str, tokens: TokenSequence, movable: Sequence[int], n_read: int) -> list[int]:
    """``order[i]``: the position that token i gets. Special tokens keep theirs."""
    order = np.arange(n_read)
    places = np.array(movable)
    if change == "swap":
        words = [index for index in movable if any(letter.isalnum() for letter in tokens[index].text)]
        start = words if len(words) >= 2 else movable
        defaults = start[0] if len(start) < 4 else start[1], start[-1]
        names = {index: [numbered(index, tokens[index].display)] for index in movable}
        chosen = []
        with st.container(horizontal=True):
            for name, default in zip(("first", "second"), defaults, strict=True):
                page_state.belongs_to(f"swap {name}", tokens.ids, default=default)
                chosen.append(one_of(p.text[name], names, default, key=f"swap {name}", in_list=True, width=220))
        order[chosen] = order[chosen[::-1]]
    elif change == "reverse":
        order[places] = places[::-1]
    else:
        asked = "".join(page_state.asked("shuffles")[:1])
        first = int(asked) if asked.isascii() and asked.isdecimal() and len(asked) < 6 else 0
        count = st.session_state.setdefault("shuffles", first)
        if st.button(p.text["again"], icon=":material/shuffle:"):
            count = st.session_state["shuffles"] = count + 1
        page_state.write("shuffles", (str(count),) if count else ())
        order[places] = np.random.default_rng(count).permutation(places)
    return order.tolist()


def _show_readings(p: Page, tokens: Sequence, order: Sequence[int] | None) -> None:
    """The tokens in the order of their positions, before and after; those that moved are marked."""
    row = ChipRow(p.text["before"], tuple(Chip(token.display, str(token.index)) for token in tokens))
    if order is None:
        after = tuple(Chip(token.display, p.text["no_place"], "marked") for token in tokens)
    else:
        by_place = sorted(tokens, key=lambda token: order[token.index])
        after = tuple(
            Chip(token.display, str(place), "marked" if token.index != place else "plain")
            for place, token in enumerate(by_place)
        )
    chips([row, ChipRow(p.text["after"], after)], key="order tokens")


def _show_answers(p: Page, before: Answer, after: Answer) -> None:
    """Both answers, large, with their probabilities."""
    text = p.text
    with st.container(border=True, horizontal=True, gap="medium", key="order answers"):
        for name, answer in (("before", before), ("after", after)):
            with st.container(width=420, gap=None):
                sure = text["sure"].format(probability=three_digits(answer.probability)) if answer.parts else ""
                st.caption(" · ".join(filter(None, (f"{text['answers']} {text[name]}", sure))))
                words = as_plain(" ".join(answer.text.split())) or "–"
                st.markdown(f"### {words}" if name == "before" else f"### :primary[{words}]")
    if before.text == after.text:
        st.caption(f"{text['same']} {text['same_note']}")
