"""Units that can be read: those whose promoted words belong together.

Most units cannot: a unit often represents several things at once (Elhage et al. 2022, "Toy Models of Superposition").
A few promote words that the model itself treats alike, such as "my", "your", "his" (Geva et al. 2022, "Transformer
Feed-Forward Layers Build Predictions by Promoting Concepts in the Vocabulary Space").
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from transformer.layers.feed_forward_units import (
    UnitWords,
    strongest_units,
    unit_words,
    vocabulary_matrix,
    why_no_words,
)
from transformer.runs.traces import Trace

WORDS = 6  # promoted words that are compared, per unit
LEAST_CLOSE = 8  # smallest number of close pairs, out of 15
MOST_BESIDE = 0.8  # largest value at any other word, as a share of the unit's largest
NEAR = 400  # one row is near another if no more than 1 in 400 rows are nearer
_PER_TOKEN, _MOST = 15, 600  # how many units are tried, per token and in all
_CLOSENESS = 0.2  # doublings of the rank in the vocabulary that one close pair is worth
_KINSHIP = 0.5  # and those that one promoted word is worth that is near the token itself
_ALONE = 2.0  # and those that a unit is worth that fires at one word only
_ROWS = 256  # units compared with the vocabulary at a time
_SPACE = "·"  # how a space is displayed


@dataclass(frozen=True)
class ReadableUnit:
    """A unit whose promoted words are near each other in the vocabulary matrix.

    Attributes:
        layer: Its layer.
        position: The token at which its value is largest, special tokens other than blanks left out.
        words: What it promotes there.
        n_close: How many of the 15 pairs of its six words are near each other.
        n_akin: How many other words of these are near the token at which it fires.
        beside: Its largest value at any other word, as a share of its largest value; at least 0.
    """

    layer: int
    position: int
    words: UnitWords
    n_close: int
    n_akin: int
    beside: float


def readable_units(trace: Trace, stack: str, *, count: int = 3) -> tuple[ReadableUnit, ...]:
    """Return the most readable units of a stack for a sentence, the clearest (``_clarity``) first.

    A unit is readable if it is among the strongest of a token, fires there clearly more than at any other word, its
    ``WORDS`` most promoted tokens are whole words, and at least ``LEAST_CLOSE`` pairs of these are near each other. A
    unit that promotes mostly the same words as a more readable one is left out. The result is empty if no unit is
    readable, or if units have no words.
    """
    if why_no_words(trace.checkpoint, stack) is not None:
        return ()
    vocabulary = vocabulary_matrix(trace.checkpoint, stack)
    tried = list(_with_whole_words(trace, stack, vocabulary))
    near = _near(vocabulary[0], sorted({word.id for _, _, unit, _ in tried for word in unit.up}))
    found = []
    for layer, position, unit, beside in tried:
        pairs = combinations((word.id for word in unit.up), 2)
        n_close = sum(one in near[other] or other in near[one] for one, other in pairs)
        if n_close >= LEAST_CLOSE:
            own = trace.tokens(stack)[position].id
            n_akin = sum(own in near[word.id] and own != word.id for word in unit.up)
            found.append(ReadableUnit(layer, position, unit, n_close, n_akin, beside))
    found.sort(key=_clarity, reverse=True)
    kept: list[ReadableUnit] = []
    for one in found:
        if all(len(_ids(one) & _ids(other)) <= WORDS // 2 for other in kept):
            kept.append(one)
    return tuple(kept[:count])


def _beside(values: np.ndarray, peak: int) -> float:
    """Return the largest of ``values`` except that of the peak, as a share of that; at least 0."""
    return max(0.0, float(np.delete(values, peak).max(initial=0.0) / values[peak]))


def _clarity(unit: ReadableUnit) -> float:
    """Return how clear a unit is: it fires at one word, and its words are akin and not the commonest.

    A vocabulary is ordered by frequency, so the median of log₂ of the ids is larger for rarer words. "month, year,
    morning" says more than "you, it, that", even if the latter are closer.
    """
    alone = _ALONE * (1 - unit.beside)
    return (
        alone
        + _CLOSENESS * unit.n_close
        + _KINSHIP * unit.n_akin
        + float(np.median(np.log2([1 + word.id for word in unit.words.up])))
    )


def _ids(unit: ReadableUnit) -> set[int]:
    return {word.id for word in unit.words.up}


def _with_whole_words(
    trace: Trace, stack: str, vocabulary: tuple[np.ndarray, bool]
) -> Iterator[tuple[int, int, UnitWords, float]]:
    """Yield each token's strong units that fire most there and promote whole words, with ``beside``."""
    blank = trace.checkpoint.special.mask
    positions = [token.index for token in trace.tokens(stack) if not token.special or token.id == blank]
    marked = any(token.display.startswith(_SPACE) for token in trace.tokens(stack))
    n_layers = trace.n_layers(stack)
    per_token = max(1, min(_PER_TOKEN, _MOST // max(1, n_layers * len(positions))))
    for layer in range(n_layers):
        hidden = trace.values(f"{stack}.layers.{layer}.feed_forward.hidden")
        chosen = {unit for at in positions for unit in strongest_units(trace, stack, layer, at, count=per_token)}
        peaks = {unit: positions[int(hidden[positions, unit].argmax())] for unit in chosen}
        for position in positions:
            here = sorted(unit for unit, peak in peaks.items() if peak == position and hidden[peak, unit] > 0)
            beside = {unit: _beside(hidden[positions, unit], positions.index(position)) for unit in here}
            units = [unit for unit in here if beside[unit] <= MOST_BESIDE]
            if not units:
                continue
            for unit in unit_words(trace, stack, layer, position, units=units, words=WORDS, vocabulary=vocabulary):
                if all(_is_word(word.piece, marked=marked) for word in unit.up):
                    yield layer, position, unit, beside[unit.unit]


def _is_word(piece: str, *, marked: bool) -> bool:
    """Return whether a token, as it is displayed, is a whole word."""
    word = piece.removeprefix(_SPACE)
    return word.isalpha() and (not marked or piece.startswith(_SPACE))


def _near(matrix: np.ndarray, ids: Collection[int]) -> dict[int, set[int]]:
    """Return the rows nearest to each of ``ids`` by cosine, itself among them."""
    unit_rows = matrix / np.maximum(np.linalg.norm(matrix, axis=-1, keepdims=True), 1e-12)
    listed, most = list(ids), 1 + max(1, len(matrix) // NEAR)
    near = {}
    for start in range(0, len(listed), _ROWS):
        part = listed[start : start + _ROWS]
        order = np.argpartition(-(unit_rows[part] @ unit_rows.T), min(most, len(matrix) - 1), axis=-1)[:, :most]
        near |= {id: set(row.tolist()) for id, row in zip(part, order, strict=True)}
    return near
