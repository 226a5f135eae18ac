"""Content of the Paths page for a sentence in which a word is swapped, computed without Streamlit.

A notebook builds the same object:

    >>> import transformer
    >>> from views.paths.paths_view_model import paths_view_model
    >>> trace = transformer.trace(transformer.load("checkpoints/en-fr"), "The cat sat on the mat.")
    >>> shown = paths_view_model(trace, "The dog sat on the mat.")
    >>> shown.effect, shown.strongest, f"{shown.strongest_share:.0%}"
    ('flips', Place(stack='encoder', part='residual', layer=2, index=1), '99%')
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from transformer.interventions.activation_patching import (
    HEADS,
    PARTS,
    Contrast,
    Place,
    Turn,
    contrast_of,
    head_places,
    recovered_shares,
    replace_turn_tokens,
    token_places,
)
from transformer.interventions.experiment import Experiment, experiment
from transformer.interventions.patch_cone import patch_cone
from transformer.runs.head_places import Head
from transformer.runs.traces import Trace

WIDE = 20  # a map with at most this many columns leaves space next to it
NARROW = 8  # a map with at most this many columns shows all tokens
LEAST_SHOWN = 0.05  # the smallest share with which a token has a column in a map of more tokens
_NEAR_BEST = 0.9  # fraction of the largest share; locations above it count as equally good, and the deepest is named

Grid = tuple[tuple[Place | None, ...], ...]


class Swap(NamedTuple):
    """A run of neighbouring tokens that was replaced, as text without the preceding space."""

    clean: str
    corrupt: str


@dataclass(frozen=True)
class PathsChoices:
    """What the reader chose.

    Attributes:
        patches: What is patched in, "tokens" (one vector at one position) or "heads" (one head at all positions).
        every_part: Whether the map has the outputs of all sub-layers in addition to the residual stream.
        every_token: Whether the map has a column for tokens at which no patch has much effect, too.
        row: The row of logits that the word is read from; ``None`` for the first one that changes.
        other: The id of the alternative token or class for the comparison; ``None`` for the model's own.
    """

    patches: str = "tokens"
    every_part: bool = False
    every_token: bool = False
    row: int | None = None
    other: int | None = None


@dataclass(frozen=True)
class HeadMap:
    """One number per head, by layer.

    Attributes:
        rows: Stack, kind and layer of each row.
        values: [row, head]; NaN without a head or a number.
    """

    rows: tuple[tuple[str, str, int], ...]
    values: np.ndarray = field(repr=False)

    @classmethod
    def of(cls, numbers: Mapping[Head, float]) -> HeadMap:
        """Lay out the numbers of heads, by layer in the order of first appearance; empty rows are left out."""
        known = {head: value for head, value in numbers.items() if np.isfinite(value)}
        rows = tuple(dict.fromkeys(head[:3] for head in numbers if any(head[:3] == other[:3] for other in known)))
        values = np.full((len(rows), 1 + max((head.head for head in known), default=-1)), np.nan)
        for head, value in known.items():
            values[rows.index(head[:3]), head.head] = value
        return cls(rows, values)

    @property
    def strongest(self) -> Head:
        """The head with the largest number, whatever its sign."""
        row, column = np.unravel_index(np.nanargmax(np.abs(self.values)), self.values.shape)
        return Head(*self.rows[row], int(column))

    def number(self, head: Head) -> float:
        """Return the number of a head; NaN if it has none."""
        return float(self.values[self.rows.index(head[:3]), head.head])


def patched_places(contrast: Contrast, turn: Turn, choices: PathsChoices) -> Grid:
    """Return the location that each cell of the map patches, [row][column]; ``None`` for no such part.

    For tokens, the columns are the encoder's tokens followed by the decoder's up to the row of the word, and the rows
    are layers. For heads, each attention layer of each kind has a row.
    """
    stacks = tuple(contrast.clean)
    if choices.patches == "heads":
        own = [row for stack in stacks for row in head_places(contrast, stack)]
        most = max(map(len, own))
        return tuple((*row, *[None] * (most - len(row))) for row in own)
    by_stack = [{row[0][1:3]: row for row in token_places(contrast, turn, stack)} for stack in stacks]
    widths = [len(next(iter(rows.values()))) for rows in by_stack]
    parts = PARTS if choices.every_part else PARTS[:1]
    order = sorted(
        {at for rows in by_stack for at in rows if at[0] in parts}, key=lambda at: (PARTS.index(at[0]), at[1])
    )
    return tuple(
        tuple(place for rows, width in zip(by_stack, widths, strict=True) for place in rows.get(at, [None] * width))
        for at in order
    )


@dataclass(frozen=True)
class PathsViewModel:
    """Everything that the Paths page draws for one swap; ``paths_view_model`` creates it.

    Attributes:
        found: The original run and the run of the other sentence with the original output.
        contrast: The same pair in the form that patching needs.
        turn: The output word that is compared.
        choices: What the reader chose.
        shares: The recovered share at each of ``places``, [location]; ``None`` before the measurement.
        is_estimate: Whether the shares come from one backward pass.
    """

    found: Experiment = field(repr=False)
    contrast: Contrast = field(repr=False)
    turn: Turn
    choices: PathsChoices
    shares: np.ndarray | None = field(default=None, repr=False)
    is_estimate: bool = False

    @property
    def trace(self) -> Trace:
        """The original run."""
        return self.found.original

    @cached_property
    def grid(self) -> Grid:
        """What each cell of the map patches."""
        return patched_places(self.contrast, self.turn, self.choices)

    @cached_property
    def places(self) -> tuple[Place, ...]:
        """All patched locations, in the order of the cells."""
        return tuple(place for row in self.grid for place in row if place is not None)

    @cached_property
    def values(self) -> np.ndarray:
        """The share of every cell: [row, column]; NaN where there is none."""
        known = iter(np.full(len(self.places), np.nan) if self.shares is None else self.shares)
        return np.array([[np.nan if place is None else next(known) for place in row] for row in self.grid])

    @property
    def limit(self) -> float:
        """The share at which colours end: 1, or the largest share if it is larger."""
        return max(1.0, float(np.nanmax(np.abs(self.values), initial=0.0)))

    @cached_property
    def column_labels(self) -> tuple[str, ...]:
        """Column labels: the tokens of both stacks, or the indices of the heads."""
        if self.choices.patches == "heads":
            return tuple(map(str, range(len(self.grid[0]))))
        return tuple(label for stack in self.contrast.clean for label in self.contrast.tokens(stack, self.turn).labels)

    @cached_property
    def columns(self) -> tuple[int, ...]:
        """The drawn columns: those of tokens at which a patch has an effect, or all if they are few."""
        every = tuple(range(len(self.column_labels)))
        if self.choices.patches == "heads" or self.choices.every_token or len(every) <= NARROW:
            return every
        largest = np.nan_to_num(np.abs(self.values)).max(axis=0)
        return tuple(column for column in every if largest[column] >= LEAST_SHOWN) or every

    @property
    def column_breaks(self) -> tuple[int, ...]:
        """The drawn column at which the tokens of the decoder begin, if there is an encoder."""
        if self.choices.patches != "tokens" or len(self.contrast.clean) < 2:
            return ()
        before = sum(column < len(self.contrast.tokens("encoder", self.turn)) for column in self.columns)
        return (before,) if 0 < before < len(self.columns) else ()

    @property
    def reading_token(self) -> str | None:
        """The last token that the decoder has read, from whose vector the word is predicted, if it is drawn."""
        tokens = self.contrast.clean.get("decoder")
        if tokens is None or self.choices.patches != "tokens" or len(self.column_labels) - 1 not in self.columns:
            return None
        return tokens.displays[self.turn.row]

    @cached_property
    def row_breaks(self) -> tuple[int, ...]:
        """The rows at which another part, or another stack, begins."""
        first = [next(place for place in row if place is not None) for row in self.grid]
        heads = self.choices.patches == "heads"
        kinds = [(place.stack, place.part) if heads else place.part for place in first]
        return tuple(index for index in range(1, len(kinds)) if kinds[index] != kinds[index - 1])

    @property
    def is_wide(self) -> bool:
        """Whether the map has so many columns that nothing fits next to it."""
        return len(self.columns) > WIDE

    @cached_property
    def strongest(self) -> Place | None:
        """The location whose patch recovers most; among nearly equal tokens, the deepest in the model.

        The input of layer 0 at the swapped word recovers everything by construction, so it counts only if there is
        nothing else.
        """
        if self.shares is None or not np.isfinite(self.shares).any():
            return None
        inner = [place.part != "residual" or place.layer > 0 for place in self.places]
        shares = np.where(inner, self.shares, -np.inf) if any(inner) else self.shares
        best = float(np.nanmax(shares))
        enough = _NEAR_BEST * best if best > 0 and self.choices.patches == "tokens" else best
        good = [
            (place.layer, share, place) for place, share in zip(self.places, shares, strict=True) if share >= enough
        ]
        return max(good)[2]

    @property
    def strongest_share(self) -> float:
        """The share that ``strongest`` recovers."""
        return float(self.shares[self.places.index(self.strongest)])

    @property
    def strongest_cell(self) -> tuple[int, int] | None:
        """The row and the column of ``strongest``."""
        return None if self.strongest is None else self.cell_of(self.strongest)

    def patched_at(self, stack: str, layer: int, token: int) -> Place:
        """Return the patch of what a layer reads at a token, or at the last token on the map."""
        size = len(self.contrast.tokens(stack, self.turn))
        return Place(stack, "residual", layer, min(token, size - 1))

    def cell_of(self, place: Place) -> tuple[int, int]:
        """Return the row and the column of a location."""
        return next((index, row.index(place)) for index, row in enumerate(self.grid) if place in row)

    def reached_by(self, place: Place) -> np.ndarray:
        """Return which cells a patch of ``place`` can change, whatever is patched in: [row, column]."""
        cone = patch_cone(self.found.changed, place)
        return np.array([[other in cone.places for other in row] for row in self.grid])

    @property
    def arrived_share(self) -> float | None:
        """The share that enters the last layer at the last token; ``None`` if it is all or nothing."""
        last = self.trace.n_layers("decoder") - 1
        share = self.values[self.cell_of(self.patched_at("decoder", last, self.turn.row))]
        return float(share) if LEAST_SHOWN <= share <= 1 - LEAST_SHOWN else None

    @cached_property
    def swaps(self) -> tuple[Swap, ...]:
        """The words that differ between the two sentences."""
        stack = next(iter(self.contrast.differing))
        clean, corrupt = (tokens[stack].displays for tokens in (self.contrast.clean, self.contrast.corrupt))
        groups: list[list[int]] = []
        for index in self.contrast.differing[stack]:
            if groups and index == groups[-1][-1] + 1:
                groups[-1].append(index)
            else:
                groups.append([index])
        return tuple(Swap(*(_joined(side[index] for index in group) for side in (clean, corrupt))) for group in groups)

    @property
    def answer(self) -> str:
        """The token, or class, of the original output."""
        return self.display(self.turn.answer)

    @property
    def other(self) -> str:
        """The alternative token, or class, that the output is compared with."""
        return self.display(self.turn.other)

    def display(self, id: int) -> str:
        """Return how an output token, or a class, is displayed."""
        config = self.contrast.checkpoint.config
        return config.class_names[id] if config.n_classes else self.contrast.checkpoint.tokenizer.display(id)

    @property
    def step(self) -> int:
        """The index of the word among the output tokens."""
        return self.found.asked.rows.index(self.turn.row)

    @cached_property
    def effect(self) -> str:
        """The effect of the swap: "flips" the prediction to ``other``, "keeps" it, or only changes its "lead"."""
        before, after = (predicted[self.step] for predicted in self.found.predicted)
        if before != self.turn.answer:
            return "lead"
        return "flips" if after == self.turn.other else "keeps" if after == before else "lead"

    @cached_property
    def predictions(self) -> tuple[tuple[str, float], tuple[str, float]]:
        """The most likely output in each of the two runs, with its probability."""
        change = self.found.candidates(self.step, shown=1)
        before = max(change, key=lambda one: one.before)
        after = max(change, key=lambda one: one.after)
        return (before.display, before.before), (after.display, after.after)


def _joined(displays: Iterable[str]) -> str:
    """Return tokens as text: ``·`` is the space before a word."""
    text = "".join(displays)
    return text.replace("·", " ").strip() or text


def turn_of(contrast: Contrast, choices: PathsChoices) -> Turn:
    """Return the compared word, with the alternative that the reader chose."""
    chosen = next((turn for turn in contrast.turns if turn.row == choices.row), contrast.first_turn)
    return replace_turn_tokens(contrast, chosen, other=choices.other)


def effect_size(contrast: Contrast) -> float:
    """Return how clearly a swap changes a word: the smaller of the two leads, negative if nothing flips."""
    return max((min(turn.clean, -turn.corrupt) for turn in contrast.carried_turns), default=-np.inf)


def paths_view_model(trace: Trace, sentence: str, choices: PathsChoices = PathsChoices()) -> PathsViewModel:
    """Measure and return what the page draws for one swap.

    The page makes ``PathsViewModel`` itself, because it measures long sweeps in the background.

    Args:
        trace: The original run.
        sentence: The sentence with a word swapped; it must have the same number of tokens.
        choices: What the reader chose.

    Raises:
        InputError: The sentence cannot be compared with the original one.
    """
    found = experiment(trace, sentence=sentence, keep_answer=True)
    pair = contrast_of(found)
    turn = turn_of(pair, choices)
    places = [place for row in patched_places(pair, turn, choices) for place in row if place is not None]
    return PathsViewModel(found, pair, turn, choices, recovered_shares(pair, turn, [places])[0])


def head_of(place: Place) -> Head:
    """Return the head of a location in ``HEADS``."""
    return Head(place.stack, HEADS[place.part].removesuffix("_attention"), place.layer, place.index)
