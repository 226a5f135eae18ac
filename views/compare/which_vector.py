"""Which vector carries the difference? Parts of the run of A are patched into that of B.

Both sentences are read with the output of A. The map shows, for every location, which share of the change is undone
when the vector of A is put there (``transformer.interventions.activation_patching``).
"""

from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
import streamlit as st

import transformer
from charts.canvas.value_map import value_map
from charts.toolkit.numbers import percent
from charts.toolkit.style import signed
from transformer.interventions.activation_patching import (
    HEADS,
    Contrast,
    Place,
    Turn,
    contrast_of,
    n_passes,
    patch_grid,
    patched_changes,
    recovered_shares,
)
from transformer.interventions.attribution_patching import estimated_shares
from ui.compute.jobs import jobs
from ui.compute.store import store
from ui.lab import sweeps
from ui.lab.experiments import experiment_with
from ui.page.page import Page
from ui.shell import choice
from ui.shell.choice import chosen_option, one_of
from ui.shell.focus import select
from ui.shell.navigation import go_to
from ui.show.drawings import Cell, show_map
from ui.show.figures import show_formula, show_snippet, show_source
from ui.words.figure_texts import problem_text
from ui.words.texts import as_plain, page_texts

KEY = "patching"
LEAST_SHOWN = 0.05  # the smallest share with which a token has a column in a map of more than NARROW tokens
NARROW = 8
_NEAR_BEST = 0.9  # fraction of the largest share; tokens above it count as equally good, and the deepest is named
_HEIGHT = 280  # pixels
_BESIDE = 20  # a map with at most this many columns leaves space next to it


@dataclass(frozen=True)
class PatchMap:
    """The share that a patch at each location undoes.

    Attributes:
        contrast: Both runs.
        turn: The output token that is compared.
        grid: What each cell patches, [row][column]; ``None`` for no such part.
        shares: The share of each location, in the order of the cells; NaN where the runs do not differ.
        is_estimate: Whether the shares come from one backward pass.
    """

    contrast: Contrast
    turn: Turn
    grid: tuple[tuple[Place | None, ...], ...]
    shares: np.ndarray
    is_estimate: bool = False

    @cached_property
    def places(self) -> tuple[Place, ...]:
        """All patched locations, in the order of the cells."""
        return tuple(place for row in self.grid for place in row if place is not None)

    @cached_property
    def values(self) -> np.ndarray:
        """The share of every cell: [row, column]; NaN where there is none."""
        known = iter(self.shares)
        return np.array([[np.nan if place is None else next(known) for place in row] for row in self.grid])

    @property
    def of_heads(self) -> bool:
        """Whether heads are patched at all positions, not vectors at one position."""
        return self.places[0].part in HEADS

    @property
    def labels(self) -> tuple[str, ...]:
        """Column labels: the tokens of both stacks, or the numbers of the heads."""
        if self.of_heads:
            return tuple(map(str, range(len(self.grid[0]))))
        return tuple(label for stack in self.contrast.clean for label in self.contrast.tokens(stack, self.turn).labels)

    @property
    def strongest(self) -> Place | None:
        """The location whose patch undoes most; among nearly equal tokens, the deepest in the model.

        The input of layer 0 at the swapped word undoes everything by construction, so it counts only if there is
        nothing else.
        """
        if not np.isfinite(self.shares).any():
            return None
        inner = [place.part != "residual" or place.layer > 0 for place in self.places]
        shares = np.where(inner, self.shares, -np.inf) if any(inner) else self.shares
        best = float(np.nanmax(shares))
        enough = best if self.of_heads or best <= 0 else _NEAR_BEST * best
        good = [
            (place.layer, share, place) for place, share in zip(self.places, shares, strict=True) if share >= enough
        ]
        return max(good)[2]

    def share(self, place: Place) -> float:
        """Return the share that the patch at a location undoes."""
        return float(self.shares[self.places.index(place)])

    def columns(self, *, every: bool) -> list[int]:
        """Return the columns to draw: of many tokens, those at which a patch has an effect."""
        count = len(self.grid[0])
        if every or self.of_heads or count <= NARROW:
            return [*range(count)]
        largest = np.nan_to_num(np.abs(self.values)).max(axis=0)
        return [column for column in range(count) if largest[column] >= LEAST_SHOWN] or [*range(count)]


def which_vector(p: Page, sentence: str) -> None:
    """Draw the map of shares for sentence B, what it means, and the code."""
    text = p.text["patch"]
    try:
        found = experiment_with(p.run, sentence=sentence, keep_answer=True)
        pair: Contrast = store.get(p.run, ("contrast", sentence), lambda: contrast_of(found))
    except transformer.InputError as error:  # another number of tokens, or the same sentence
        st.info(as_plain(problem_text(error)), icon=":material/info:")
        return
    if not pair.turns:
        st.info(text["nothing_asked"], icon=":material/info:")
        return
    with st.container(horizontal=True, vertical_alignment="center"):
        what = chosen_option(p.text, "patches", ["tokens", "heads"], key="paths_section", label_visibility="collapsed")
        turn = _choose_turn(p, pair)
        every_part = what == "tokens" and choice.toggle(
            text["every_part"], key="paths_parts", help=text["every_part_help"]
        )
        every_token = what == "tokens" and choice.toggle(
            text["every_token"], key="paths_tokens", help=text["every_token_help"]
        )
    grid = patch_grid(pair, turn, heads=what == "heads", every_part=every_part)
    name = ("patching", sentence, turn.row, what, every_part)
    shown = _measured(p, pair, turn, grid, name)
    _draw(p, shown, every=every_token)
    _explain(p, shown, sentence, every_part=every_part)


def _choose_turn(p: Page, pair: Contrast) -> Turn:
    """Return the compared output token: the one that the swap changes most, or the reader's choice."""
    if len(pair.turns) == 1:
        return pair.turns[0]
    turns = {turn.row: turn for turn in pair.turns}
    words = [text["patch"]["turn_option"] for text in page_texts(p.text.name)]
    names = {
        row: [one.format(row=row, answer=pair.display(turn.answer), other=pair.display(turn.other)) for one in words]
        for row, turn in turns.items()
    }
    row = one_of(
        p.text["patch"]["turn"],
        names,
        pair.most_changed_turn.row,
        key="paths_turn",
        owner=(p.checkpoint.fingerprint, pair.corrupt, tuple(map(tuple, names.values()))),
        in_list=True,
        label_visibility="collapsed",
        width=260,
    )
    return turns[row]


def _measured(
    p: Page, pair: Contrast, turn: Turn, grid: tuple[tuple[Place | None, ...], ...], name: tuple[Hashable, ...]
) -> PatchMap:
    """Return the measured shares; for a long sweep that has not been requested, estimates of them."""
    text, places = p.text["patch"], [place for row in grid for place in row if place is not None]
    if sweeps.waits(p, name, len(places)):
        guess = store.get(p.run, (*name, "estimate"), lambda: estimated_shares(pair, turn, [places])[0])
        best = np.argsort(-np.abs(np.nan_to_num(guess)))[: sweeps.CHECKED]
        few = [places[index] for index in best]
        true = store.get(p.run, (*name, "check"), lambda: recovered_shares(pair, turn, [few])[0])
        sweeps.say_error(p, [_place_name(p, pair, turn, place) for place in few], guess[best], true, count=len(places))
        passes = n_passes(pair, turn, len(places))
        sweeps.start_button(p, name, text["start"].format(passes=passes, places=len(places)))
        return PatchMap(pair, turn, grid, guess, is_estimate=True)
    shares = store.known(p.run, name)
    if shares is None:
        shares = jobs.result(
            p.run,
            name,
            lambda report: recovered_shares(pair, turn, [places], progress=report)[0],
            saying=lambda done, total: text["measuring"].format(done=done, total=total),
            passes=n_passes(pair, turn, len(places)),
        )
    if shares is None:  # stopped
        p.finish()
    return PatchMap(pair, turn, grid, shares)


def _draw(p: Page, shown: PatchMap, *, every: bool) -> None:
    """Say which patch undoes most, and draw the map."""
    text, turn = p.text["patch"], shown.turn
    pair = shown.contrast
    names = {"answer": _plainly(pair.display(turn.answer)), "other": _plainly(pair.display(turn.other))}
    best = shown.strongest
    if best is None:
        st.info(text["no_gap"], icon=":material/info:")
        return
    place = _place_name(p, pair, turn, best)
    columns = shown.columns(every=every)
    values, kind = shown.values[:, columns], "heads" if shown.of_heads else "tokens"
    grid = tuple(tuple(row[column] for column in columns) for row in shown.grid)
    cell = next((index, row.index(best)) for index, row in enumerate(grid) if best in row)
    known, value_name = np.isfinite(values), text["estimate_value" if shown.is_estimate else "value"]
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
                value_name=value_name,
                phrase=(text["phrase_before"], text[f"phrase_{kind}"]),
                height=_HEIGHT,
                selected=cell,
                masked_text=text["no_part"],
            ),
            key=KEY,
            on_click=partial(_open, grid),
        )
    hidden = len(shown.grid[0]) - len(columns)
    with beside:
        claim = text["says_estimate" if shown.is_estimate else "says"]
        st.markdown(claim.format(place=place, share=percent(shown.share(best)), **names))
        st.markdown(text["question"].format(**names, clean=signed(turn.clean), corrupt=signed(turn.corrupt)))
        notes = [text["hidden"].format(count=hidden, share=percent(LEAST_SHOWN))] if hidden else []
        st.caption(" ".join((*notes, text[f"caption_{kind}"], text["sufficient"])))


def _row_label(p: Page, row: tuple[Place | None, ...]) -> str:
    place = next(place for place in row if place is not None)
    part = f"{place.stack}_heads" if place.part == "self_heads" else place.part
    return p.text["patch"][f"row_{part}"].format(layer=place.layer)


def _place_name(p: Page, pair: Contrast, turn: Turn, place: Place) -> str:
    """Name a location in a sentence."""
    text = p.text["patch"]
    column = str(place.index) if place.part in HEADS else _plainly(pair.tokens(place.stack, turn).labels[place.index])
    stack = text[f"in_{place.stack}"] if len(pair.clean) > 1 else ""
    return text[f"place_{place.part}"].format(layer=place.layer, column=column, stack=stack)


def _plainly(token: str) -> str:
    """Return a token for a sentence, without the dot that stands for its space."""
    return as_plain(token.removeprefix("·") or token)


def _open(grid: tuple[tuple[Place | None, ...], ...], cell: Cell) -> None:
    """Open a head on Attention, or select the layer and token of a vector: the callback of a click."""
    place = grid[cell.query][cell.key]
    if place is None:
        return
    at = {"stack": place.stack, "layer": place.layer}
    if place.part in HEADS:
        go_to("attention", kind="cross" if place.part == "cross_heads" else "self", head=place.index, **at)
    select(kind="cross" if place.part == "cross_attention" else "self", token=place.index, **at)


def _explain(p: Page, shown: PatchMap, sentence: str, *, every_part: bool) -> None:
    """Draw the formula with its sources, and the code."""
    text, pair = p.text["patch"], shown.contrast
    names = {"answer": as_plain(pair.display(shown.turn.answer)), "other": as_plain(pair.display(shown.turn.other))}
    show_formula(text["formula"], caption=text["shapes"].format(**names, count=len(shown.places)))
    measure = "estimated_shares" if shown.is_estimate else "recovered_shares"
    module = "attribution_patching" if shown.is_estimate else "activation_patching"
    arguments = f"heads={shown.of_heads}" + (", every_part=True" if every_part else "")
    show_snippet(
        "patching",
        f"{p.preamble}\nfrom transformer.interventions.activation_patching import contrast, patch_grid\n"
        f"from transformer.interventions.{module} import {measure}\n\n"
        f"both = contrast(trace, {sentence!r})\n"
        f"turn = next(turn for turn in both.turns if turn.row == {shown.turn.row})\n"
        f"grid = patch_grid(both, turn, {arguments})\n"
        "places = [place for row in grid for place in row if place is not None]\n"
        f"for place, share in zip(places, {measure}(both, turn, [places])[0]):\n"
        "    print(place, share.round(2))\n",
    )
    show_source(contrast_of, estimated_shares if shown.is_estimate else recovered_shares, patched_changes)
