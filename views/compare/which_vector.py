"""Which vector carries the difference? Parts of the run of A are patched into that of B.

Both sentences are read with the output of A. The map shows, for every location, what share of the change is undone when
the vector of A is patched in there (``transformer.interventions.activation_patching``).
"""

from functools import partial

import numpy as np
import streamlit as st

from charts.canvas.value_map import value_map
from transformer import InputError
from transformer.interventions.activation_patching import (
    HEADS,
    Contrast,
    Place,
    Turn,
    n_passes,
    patch_grid,
    recovered_shares,
)
from transformer.interventions.attribution_patching import estimated_shares
from transformer.interventions.patch_map import LEAST_SHOWN, PatchMap
from ui.page.page import Page
from ui.sections import sweeps
from ui.shell.choice import one_of
from ui.shell.focus import select
from ui.shell.navigation import go_to
from ui.show.drawings import Cell, show_map
from ui.words.texts import Marked, as_plain, page_texts, plain_word, problem_text

KEY = "patching"
_HEIGHT = 280  # pixels
_BESIDE = 20  # a map with at most this many columns leaves space next to it
_PLACES = "[[place for row in grid for place in row if place is not None]]"


def which_vector(p: Page, pair: Contrast | InputError) -> None:
    """Draw the map of shares for sentence B, and what it means."""
    if isinstance(pair, InputError):  # another number of tokens, or the same sentence
        st.info(as_plain(problem_text(pair)), icon=":material/info:")
        return
    if not pair.turns:
        st.info(p.text["patch"]["nothing_asked"], icon=":material/info:")
        return
    with st.container(horizontal=True, vertical_alignment="center"):
        what = p.option("patches", ("tokens", "heads"), key="paths_section", label_visibility="collapsed")
        turn = _choose_turn(p, pair)
        of_tokens = what == "tokens"
        every_part = of_tokens and p.toggle("every_part", key="paths_parts")
        every_token = of_tokens and p.toggle("every_token", key="paths_tokens")
    grid = p.calc(patch_grid, pair, turn, heads=not of_tokens, every_part=every_part, name="grid")
    found, is_estimate = _shares(p, pair, turn, grid)
    _draw(p, PatchMap(pair, turn, grid, found), every=every_token, is_estimate=is_estimate)


def _choose_turn(p: Page, pair: Contrast) -> Turn:
    """Return the compared output token: the one that the swap changes most, or the reader's choice."""
    row = pair.most_changed_turn.row
    turns = {turn.row: turn for turn in pair.turns}
    if len(turns) > 1:
        words = [text["patch"]["turn_option"] for text in page_texts(p.name)]
        words = [p.text["patch"]["turn_option"], *words]
        names = {
            row: [
                one.format(row=row, answer=pair.display(turn.answer), other=pair.display(turn.other)) for one in words
            ]
            for row, turn in turns.items()
        }
        owner = (p.checkpoint.fingerprint, pair.corrupt, tuple(map(tuple, names.values())))
        more = {"key": "paths_turn", "in_list": True, "label_visibility": "collapsed", "width": 260, "owner": owner}
        row = one_of(p.text["patch"]["turn"], names, row, **more)
    return p.known(turns[row], f"next(turn for turn in contrast.turns if turn.row == {row})", key=row)


def _shares(p: Page, pair: Contrast, turn: Turn, grid: tuple[tuple[Place | None, ...], ...]) -> tuple[np.ndarray, bool]:
    """Return the measured shares, or for a long sweep that has not been requested, estimates of them."""
    places = [place for row in grid for place in row if place is not None]
    given = p.known([places], _PLACES, key=tuple(places))
    name = f"patching {hash((tuple(pair.corrupt.values()), turn.row, tuple(places)))}"
    if not sweeps.waits(p, name, len(places)):
        shares = p.calc(
            recovered_shares, pair, turn, given, name="shares", slow=True, wait="wait.patch", shows=("[0].tolist()",)
        )
        if shares is None:  # stopped
            p.finish()
        return shares[0], False
    guess = p.calc(estimated_shares, pair, turn, given, name="estimates", shows=("[0].tolist()",))[0]
    best = np.argsort(-np.abs(np.nan_to_num(guess)))[: sweeps.CHECKED]
    few = [places[index] for index in best]
    python = f"[[{_PLACES}[0][index] for index in {best.tolist()}]]"
    true = p.calc(recovered_shares, pair, turn, p.known([few], python, key=tuple(few)), name="checked")[0]
    pairs = [
        (_name_of(p, pair, turn, place), guess[at], true[n])
        for n, (at, place) in enumerate(zip(best, few, strict=True))
    ]
    sweeps.say_error(p, pairs, count=len(places))
    passes = n_passes(pair, turn, len(places))
    sweeps.start_button(p, name, p.words("patch.start", passes=passes, count=len(places)))
    return guess, True


def _draw(p: Page, shown: PatchMap, *, every: bool, is_estimate: bool) -> None:
    """Say which patch undoes most, draw the map, and the formula."""
    text, turn, pair, best = p.text["patch"], shown.turn, shown.contrast, shown.strongest
    if best is None:
        st.info(text["no_gap"], icon=":material/info:")
        return
    names = {"answer": plain_word(pair.display(turn.answer)), "other": plain_word(pair.display(turn.other))}
    columns = shown.columns(every=every)
    values, kind = shown.values[:, columns], "heads" if shown.of_heads else "tokens"
    grid = tuple(tuple(row[column] for column in columns) for row in shown.grid)
    known = np.isfinite(values)
    picture, beside = st.columns([7, 4], gap="medium") if len(columns) <= _BESIDE else (st.container(), st.container())
    with picture:
        show_map(
            value_map(
                np.where(known, values, 0.0),
                row_labels=[_row_label(p, row) for row in grid],
                column_labels=[shown.labels[column] for column in columns],
                row_title=text["rows_title"],
                column_title=text[f"columns_{kind}"],
                allowed=known,
                limit=max(1.0, float(np.nanmax(np.abs(values), initial=0.0))),
                title=text[f"map_{kind}"],
                value_name=text["estimate_value" if is_estimate else "value"],
                phrase=(text["phrase_before"], text[f"phrase_{kind}"]),
                height=_HEIGHT,
                selected=next((index, row.index(best)) for index, row in enumerate(grid) if best in row),
                masked_text=text["no_part"],
            ),
            key=KEY,
            on_click=partial(_open, grid),
        )
    with beside:
        place = Marked(as_plain(_name_of(p, pair, turn, best)))
        p.say("patch.says_estimate" if is_estimate else "patch.says", place=place, share=shown.share(best), **names)
        p.say("patch.question", clean=turn.clean, corrupt=turn.corrupt, **names)
        if hidden := len(shown.grid[0]) - len(columns):
            p.say("patch.hidden", small=True, count=hidden, share=LEAST_SHOWN)
        p.say(f"patch.caption_{kind}", small=True)
        p.say("patch.sufficient", small=True)
    p.formula(text["formula"], "patch.shapes", count=len(shown.places), **names)


def _row_label(p: Page, row: tuple[Place | None, ...]) -> str:
    place = next(place for place in row if place is not None)
    part = f"{place.stack}_heads" if place.part == "self_heads" else place.part
    return p.words(f"patch.row_{part}", layer=place.layer)


def _name_of(p: Page, pair: Contrast, turn: Turn, place: Place) -> str:
    """Name a location in a sentence."""
    column = str(place.index) if place.part in HEADS else plain_word(pair.tokens(place.stack, turn).labels[place.index])
    stack = p.text["patch"][f"in_{place.stack}"] if len(pair.clean) > 1 else ""
    return p.words(f"patch.place_{place.part}", layer=place.layer, column=column, stack=stack)


def _open(grid: tuple[tuple[Place | None, ...], ...], cell: Cell) -> None:
    """Open a head on Attention, or select the layer and token of a vector: the callback of a click."""
    place = grid[cell.query][cell.key]
    if place is None:
        return
    at = {"stack": place.stack, "layer": place.layer}
    if place.part in HEADS:
        go_to("attention", kind="cross" if place.part == "cross_heads" else "self", head=place.index, **at)
    select(kind="cross" if place.part == "cross_attention" else "self", token=place.index, **at)
