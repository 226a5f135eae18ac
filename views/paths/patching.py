"""The Paths page: activation patching, every place put back from the clean run, as one map of each stack."""

from collections.abc import Callable, Hashable
from functools import partial

import numpy as np
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from charts.canvas.value_map import value_map
from charts.toolkit.style import signed, three_digits
from transformer.errors import InputError
from transformer.heads.prompt_batch import token_of
from transformer.interventions.activation_patching import (
    HEADS,
    Contrast,
    Place,
    Turn,
    asked_instead,
    contrast,
    head_places,
    n_passes,
    patched_differences,
    recovered,
    token_places,
)
from transformer.interventions.attribution_patching import estimated_shares
from ui.compute.jobs import jobs
from ui.compute.store import store
from ui.lab import sweeps
from ui.lab.second_sentence import second_sentence
from ui.shell import choice
from ui.shell.actions import Actions, OpenPage, SelectCell, SelectLocation
from ui.shell.choice import one_of
from ui.shell.page import Page
from ui.shell.reducer import State
from ui.show.drawings import show_map
from ui.show.figures import show_formula, show_snippet, show_source
from ui.words.texts import as_plain, page_texts

BESIDE = 9  # columns' width of the names beside a map


def patching(p: Page, room: DeltaGenerator, *, view: str) -> None:
    """Choose the corrupted sentence and, in ``room``, the word; see what brings the clean word back.

    ``view``: "tokens" (one place in one layer is put back) or "heads" (one head, everywhere).
    """
    sentence, both, turn = chosen_contrast(p, room)
    rows = [_rows(both, turn, stack, view) for stack in p.trace.stacks]
    places = [place for one in rows for row in one for place in row]  # of all stacks, in one sweep
    name, count = ("patching", sentence, turn.row, turn.other, view), len(places)
    quick = sweeps.is_long(p, count)
    if quick:
        guess = store.get(p.run, (*name, "estimate"), lambda: estimated_shares(both, turn, [places])[0])
    if waiting := sweeps.waits(p, name, count):
        _maps(p, both, turn, view, rows, guess, estimated=True)
        _check(p, both, turn, places, guess, name)
    work = partial(recovered, both, turn, [places])
    shares = measured(p, both, turn, name, lambda report: work(progress=report)[0], count=count)
    if shares is not None:
        _maps(p, both, turn, view, rows, shares)
        if quick:
            sweeps.say_agreement(p, guess, shares)
    show_formula(
        p.text["patching_formula"],
        caption=p.text["patching_shapes"].format(
            answer=as_plain(display(both, turn.answer)),
            other=as_plain(display(both, turn.other)),
            count=count,
        ),
    )
    which = "head_places(contrast" if view == "heads" else "token_places(contrast, turn"
    show_snippet(
        "patching",
        f"{p.preamble}\nfrom transformer.interventions import activation_patching as patching\n"
        "from transformer.interventions.attribution_patching import estimated_shares\n\n"
        f"contrast = patching.contrast(trace, {sentence!r})\n"
        f"turn = {turn_in_python(both, turn)}\n"
        "for stack in trace.stacks:\n"
        f"    places = patching.{which}, stack)\n"
        f"    shares = {'estimated_shares' if waiting else 'patching.recovered'}(contrast, turn, places)\n"
        "    for row, values in zip(places, shares):\n"
        "        print(stack, row[0].part, row[0].layer, values.round(2))\n",
    )
    show_source(contrast, estimated_shares if waiting else recovered, patched_differences)


def chosen_contrast(p: Page, room: DeltaGenerator) -> tuple[str, Contrast, Turn]:
    """The corrupted sentence, both runs, and the word, which is chosen in ``room``; says what the two runs say."""
    sentence = second_sentence(p, key="paths corrupted")
    if not sentence.strip():
        p.nothing_to_show(p.text["corrupted_empty"])
    both = store.get(p.run, ("contrast", sentence), lambda: contrast(p.trace, sentence))
    if not both.turns:
        p.nothing_to_show(p.text["nothing_asked"])
    with room:
        turn = _asked_instead(p, sentence, both, _turn(p, both))
    st.markdown(_in_words(p, both, turn))
    return sentence, both, turn


def measured(
    p: Page,
    both: Contrast,
    turn: Turn,
    name: tuple[Hashable, ...],
    work: Callable[[Callable[[int, int], None]], np.ndarray],
    *,
    count: int,
) -> np.ndarray | None:
    """The shares of ``count`` places, kept by ``name``; ``None`` where a long sweep was not asked for yet, or the
    reader has stopped it."""
    passes = n_passes(both, turn, count)
    if sweeps.waits(p, name, count):
        sweeps.start_button(p, name, p.text["start"].format(passes=passes, places=count))
        return None
    return jobs.result(
        p.run,
        name,
        work,
        saying=lambda done, total: p.text["measuring"].format(done=done, total=total),
        passes=passes,
    )


def _check(p: Page, both: Contrast, turn: Turn, places: list[Place], guess: np.ndarray, name: tuple) -> None:
    """The largest numbers of the estimate beside true patching."""
    best = np.argsort(-np.abs(np.nan_to_num(guess)))[: sweeps.CHECKED]
    true = store.get(p.run, (*name, "check"), lambda: recovered(both, turn, [[places[index] for index in best]])[0])
    names = [_place_name(p, both, turn, places[index]) for index in best]
    sweeps.say_error(p, names, guess[best], true, count=len(places))


def _turn(p: Page, both: Contrast) -> Turn:
    """The word of the answer that is asked about: the first one that changes, until a reader chooses another."""
    if len(both.turns) == 1:
        return both.turns[0]
    rows = [turn.row for turn in both.turns]
    names = {turn.row: (display(both, turn.answer), display(both, turn.other)) for turn in both.turns}
    first = rows.index(both.first_turn.row)
    words = [text["turn_option"] for text in page_texts(p.text.name)]
    called = {row: [said.format(row=row, answer=names[row][0], other=names[row][1]) for said in words] for row in rows}
    row = one_of(
        p.text["turn"],
        called,
        rows[first],
        key="paths_turn",
        owner=(p.checkpoint.fingerprint, both.corrupt, tuple(names.items())),
        in_list=True,
        help=p.text["turn_help"],
        width=165,
    )
    return both.turns[rows.index(row)]


def _asked_instead(p: Page, sentence: str, both: Contrast, turn: Turn) -> Turn:
    """With the other word that the reader chose, if any."""
    key = "paths_other"
    word = choice.text(
        p.text["other"],
        key=key,
        owner=(p.checkpoint.fingerprint, p.focus.sentence, sentence),
        placeholder=display(both, turn.other),
        help=p.text["other_help"],
        width=110,
    ).strip()
    if not word:
        return turn
    chosen = token_of(p.checkpoint, p.focus.sentence, word)
    if chosen == turn.answer:
        raise InputError("The answer and the other word are the same token, {value}.", value=f"“{word}”")
    return store.get(p.run, ("turn", sentence, turn.row, chosen), lambda: asked_instead(both, turn, other=chosen))


def turn_in_python(both: Contrast, turn: Turn) -> str:
    """The Python that gives it, where ``patching`` is ``activation_patching`` and ``contrast`` the two runs."""
    index, own = next((index, own) for index, own in enumerate(both.turns) if own.row == turn.row)
    chosen = "contrast.first_turn" if own == both.first_turn else f"contrast.turns[{index}]"
    return chosen if own == turn else f"patching.asked_instead(contrast, {chosen}, other={turn.other})"


def display(both: Contrast, id: int) -> str:
    """A word of the answer, or a class."""
    config = both.checkpoint.config
    return config.class_names[id] if config.n_classes else both.checkpoint.tokenizer.display(id)


def _in_words(p: Page, both: Contrast, turn: Turn) -> str:
    """What both runs say, and by how much they differ."""
    stack = next(iter(both.differing))
    places = [place for place in both.differing[stack] if place < len(both.tokens(stack, turn))]
    swapped = ", ".join(
        f"{as_plain(both.clean[stack].displays[place])} → {as_plain(both.corrupt[stack].displays[place])}"
        for place in places[:3]
    )
    key = "says" if turn.corrupt < 0 else "says_same"
    return p.text[key].format(
        swapped=swapped,
        answer=as_plain(display(both, turn.answer)),
        other=as_plain(display(both, turn.other)),
        clean=signed(turn.clean),
        corrupt=signed(turn.corrupt),
    )


def _rows(both: Contrast, turn: Turn, stack: str, view: str) -> list[list[Place]]:
    return token_places(both, turn, stack) if view == "tokens" else head_places(both, stack)


def _maps(
    p: Page,
    both: Contrast,
    turn: Turn,
    view: str,
    rows: list[list[list[Place]]],
    shares: np.ndarray,
    *,
    estimated: bool = False,
) -> None:
    """A map of each stack, side by side, on one scale. ``shares``: of all places of all ``rows``, [place]."""
    known = shares[np.isfinite(shares)]
    limit = max(1.0, float(np.abs(known).max(initial=0.0)))
    counts = [sum(map(len, one)) for one in rows]
    # As wide as they have columns, beside the names of their rows.
    columns = st.columns([len(one[0]) + BESIDE for one in rows]) if len(rows) > 1 else [st.container()]
    for column, one, values in zip(columns, rows, np.split(shares, np.cumsum(counts)[:-1]), strict=True):
        with column:
            _map(p, both, turn, view, one, values.reshape(len(one), -1), limit=limit, estimated=estimated)
    places = [place for one in rows for row in one for place in row]
    st.caption(_strongest(p, both, turn, places, shares) + " " + p.text[f"caption_{view}"])


def _map(
    p: Page,
    both: Contrast,
    turn: Turn,
    view: str,
    places: list[list[Place]],
    shares: np.ndarray,
    *,
    limit: float,
    estimated: bool,
) -> None:
    text, what, stack = p.text, "estimate" if estimated else "map", places[0][0].stack
    parts = [row[0].part for row in places]
    known = np.isfinite(shares)
    title = text[f"{what}_{view}"].format(answer=display(both, turn.answer))
    show_map(
        value_map(
            np.where(known, shares, 0.0),
            row_labels=[f"{text[f'part_{row[0].part}']} {row[0].layer}" for row in places],
            column_labels=[_column(both, turn, place) for place in places[0]],
            row_title=text["rows_title"],
            column_title=text["columns_tokens" if view == "tokens" else "columns_heads"],
            allowed=known,
            limit=limit,
            title=title if len(p.trace.stacks) == 1 else f"{text[f'stack_{stack}']} · {title}",
            value_name=text[f"{what}_value"],
            phrase=(text["phrase_before"], text["phrase_tokens" if view == "tokens" else "phrase_heads"]),
            height=315,
            breaks=[index for index in range(1, len(parts)) if parts[index] != parts[index - 1]],
            masked_text=text["no_gap"],
        ),
        key=f"patching {stack}",
        means=partial(_open, places),
    )


def _column(both: Contrast, turn: Turn, place: Place) -> str:
    """What stands over a place: its token, or the number of its head."""
    return str(place.index) if place.part in HEADS else both.tokens(place.stack, turn).labels[place.index]


def _strongest(p: Page, both: Contrast, turn: Turn, places: list[Place], shares: np.ndarray) -> str:
    if not np.isfinite(shares).any():
        return p.text["no_gap_caption"]
    best = int(np.nanargmax(shares))
    where = _place_name(p, both, turn, places[best])
    return p.text["strongest"].format(place=where, share=three_digits(float(shares[best])))


def _place_name(p: Page, both: Contrast, turn: Turn, place: Place) -> str:
    return p.text[f"place_{place.part}"].format(layer=place.layer, column=as_plain(_column(both, turn, place)))


def _open(places: list[list[Place]], _state: State, cell: SelectCell) -> Actions:
    """A head opens on Attention; a place of the stream becomes the layer and token that all pages show."""
    place = places[cell.query][cell.key]
    if place.part in HEADS:
        kind = HEADS[place.part].removesuffix("_attention")
        return (OpenPage("attention", SelectLocation(place.stack, kind, place.layer, place.index)),)
    kind = "cross" if place.part == "cross_attention" else "self"
    return (SelectLocation(place.stack, kind, place.layer, token=place.index),)
