"""Units that can be read: their words belong together, and to the token at which they fire.

Most units cannot: a unit often represents several things at once (Elhage et al. 2022, "Toy Models of Superposition").
A few promote words that the model itself treats alike, such as "my", "your", "his" (Geva et al. 2022, "Transformer
Feed-Forward Layers Build Predictions by Promoting Concepts in the Vocabulary Space").
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import torch

from transformer.layers.feed_forward_units import (
    UnitWords,
    direct_path,
    output_vectors,
    unit_words,
    vocabulary_matrix,
    why_no_words,
)
from transformer.runs.traces import Trace

WORDS = 6  # promoted words that are compared, per unit
LEAST_CLOSE = 8  # smallest number of close pairs, out of 15
LEAST_AKIN = 1  # smallest number of words that are near the token itself
MOST_BESIDE = 0.8  # largest value at any other word, as a share of the unit's largest
NEAR = 400  # one row is near another if no more than 1 in 400 rows are nearer
_PER_TOKEN, _MOST = 15, 600  # how many units are tried, per token and in all
_CLOSENESS = 0.2  # doublings of the rank in the vocabulary that one close pair is worth
_KINSHIP = 0.5  # and those that one promoted word is worth that is near the token itself
_ALONE = 2.0  # and those that a unit is worth that fires at one word only
_BLOCK = 256  # words that are compared with the vocabulary at once
_SPACE = "·"  # how a space is displayed


@dataclass(frozen=True)
class ReadableUnit:
    """A unit whose promoted words are near each other and near the token at which it fires.

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


@dataclass(frozen=True)
class _Candidate:
    """A unit with whole words; ``ids`` are those of the words, strongest first."""

    layer: int
    position: int
    unit: int
    ids: tuple[int, ...]
    beside: float


def readable_units(trace: Trace, stack: str, *, count: int = 3) -> tuple[ReadableUnit, ...]:
    """Return the most readable units of a stack for a sentence, at most one per token, the clearest first.

    A unit is readable if it is among the strongest of a token, fires there clearly more than at any other word, its
    ``WORDS`` most promoted tokens are whole words, at least ``LEAST_CLOSE`` pairs of these are near each other, and at
    least ``LEAST_AKIN`` of them is near the token itself. They are sorted by ``_clarity``. A unit that promotes mostly
    the same words as a more readable one is left out. The result is empty if no unit is readable, or if units have no
    words.
    """
    if why_no_words(trace.checkpoint, stack) is not None:
        return ()
    vocabulary = vocabulary_matrix(trace.checkpoint, stack)
    candidates = [one for layer in range(trace.n_layers(stack)) for one in _candidates(trace, stack, layer, vocabulary)]
    read = {token.id for token in trace.tokens(stack)}
    promoted = {id for one in candidates for id in one.ids}
    near = _near(vocabulary[0], sorted(promoted), sorted(promoted | read))
    found = []
    for one in candidates:
        n_close = sum(first in near[other] or other in near[first] for first, other in combinations(one.ids, 2))
        own = trace.tokens(stack)[one.position].id
        n_akin = sum(own in near[id] and own != id for id in one.ids)
        if n_close >= LEAST_CLOSE and n_akin >= LEAST_AKIN:
            found.append((one, n_close, n_akin))
    found.sort(key=lambda each: _clarity(*each), reverse=True)
    kept: list[tuple[_Candidate, int, int]] = []
    for each in found:
        ids, position = set(each[0].ids), each[0].position
        if all(len(ids & set(other.ids)) <= WORDS // 2 and position != other.position for other, _, _ in kept):
            kept.append(each)
    shown = []
    for one, n_close, n_akin in kept[:count]:
        place = (stack, one.layer, one.position)
        (words,) = unit_words(trace, *place, units=[one.unit], words=WORDS, vocabulary=vocabulary)
        shown.append(ReadableUnit(one.layer, one.position, words, n_close, n_akin, one.beside))
    return tuple(shown)


def _clarity(one: _Candidate, n_close: int, n_akin: int) -> float:
    """Return how clear a unit is: it fires at one word, and its words are akin and not the commonest.

    A vocabulary is ordered by frequency, so the median of log₂ of the ids is larger for rarer words. "month, year,
    morning" says more than "you, it, that", even if the latter are closer.
    """
    rarity = float(np.median(np.log2([1 + id for id in one.ids])))
    return _ALONE * (1 - one.beside) + _CLOSENESS * n_close + _KINSHIP * n_akin + rarity


def _candidates(trace: Trace, stack: str, layer: int, vocabulary: tuple[np.ndarray, bool]) -> list[_Candidate]:
    """Return each token's strong units of a layer that fire most there and promote whole words."""
    checkpoint, tokens, (matrix, writes) = trace.checkpoint, trace.tokens(stack), vocabulary
    read = [token.index for token in tokens if not token.special or token.id == checkpoint.special.mask]
    if not read:
        return []
    hidden = trace.values(f"{stack}.layers.{layer}.feed_forward.hidden")[read]
    most = max(1, min(_PER_TOKEN, _MOST // (trace.n_layers(stack) * len(read)), hidden.shape[1]))
    units = np.unique(np.argpartition(np.abs(hidden), -most, axis=-1)[:, -most:])
    peaks, beside = peaks_of(hidden[:, units])
    fires = beside <= MOST_BESIDE
    units, peaks, beside = units[fires], peaks[fires], beside[fires]
    positions = np.array(read)[peaks]
    added = hidden[peaks, units][:, None] * output_vectors(checkpoint, stack, layer, units.tolist())
    if writes:
        added = direct_path(trace, stack, layer, positions, added)
    effects = added @ matrix.T  # [unit, vocabulary]
    effects[:, list(checkpoint.framing.never)] = -np.inf
    marked = any(token.display.startswith(_SPACE) for token in tokens)
    found = []
    for row, top in enumerate(_largest(effects, WORDS).indices.numpy()):
        if all(is_word(checkpoint.tokenizer.display(int(id)), marked=marked) for id in top):
            position, ids = int(positions[row]), tuple(top.tolist())
            found.append(_Candidate(layer, position, int(units[row]), ids, float(beside[row])))
    return found


def peaks_of(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return where each unit is largest, and its largest other value as a share of that.

    The share is at least 0, and ∞ for a unit that never fires. ``values``: [position, unit].
    """
    peaks, columns = values.argmax(axis=0), np.arange(values.shape[1])
    largest, others = values[peaks, columns], values.copy()
    others[peaks, columns] = 0
    never = np.full(len(largest), np.inf)
    return peaks, np.divide(others.max(axis=0, initial=0), largest, out=never, where=largest > 0)


def _largest(values: np.ndarray, count: int) -> torch.return_types.topk:
    """Return the largest values of each row, in order; much faster than numpy's partition."""
    return torch.topk(torch.from_numpy(values), count)


def is_word(piece: str, *, marked: bool) -> bool:
    """Return whether a token, as it is displayed, is a whole word; a single Latin letter is not."""
    word = piece.removeprefix(_SPACE)
    return word.isalpha() and not (len(word) == 1 and word.isascii()) and (not marked or piece.startswith(_SPACE))


def _near(matrix: np.ndarray, ids: Collection[int], others: Collection[int]) -> dict[int, set[int]]:
    """Return which of ``others`` are among the rows nearest to each of ``ids`` by cosine.

    Rows are compared in blocks: with a vocabulary of 50,000, all at once would take hundreds of megabytes.
    """
    listed, compared = np.array(list(ids), dtype=int), np.array(list(others), dtype=int)
    lengths = torch.linalg.vector_norm(torch.from_numpy(matrix), dim=-1).clamp_min(1e-12).numpy()
    most = min(1 + max(1, len(matrix) // NEAR), len(matrix))
    found: dict[int, set[int]] = {}
    for start in range(0, len(listed), _BLOCK):
        rows = listed[start : start + _BLOCK]
        cosines = matrix[rows] @ matrix.T
        cosines /= lengths  # each row is still times its own length, which leaves its order as it is
        least = _largest(cosines, most).values.numpy()[:, -1:]  # the value of the last row that is still near
        near = cosines[:, compared] >= least
        found |= {int(id): set(compared[row].tolist()) for id, row in zip(rows, near, strict=True)}
    return found
