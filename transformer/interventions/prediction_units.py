"""Units that make what the model predicts at their token more likely, measured without each.

Removing every unit in turn would take one run per unit. The derivative of the probability on the direct path to the
vocabulary ranks them first; what is shown of a unit is then measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import log2

import numpy as np

from transformer.interventions.silent_units import without_unit
from transformer.layers.feed_forward_units import direct_path, output_vectors, vocabulary_matrix, why_no_words
from transformer.layers.readable_units import MOST_BESIDE, is_word, peaks_of
from transformer.predictions.answer_probabilities import PredictionRows
from transformer.runs.traces import Trace

LEAST_RAISED = 0.002  # smallest probability that a unit gives to the predicted token
_POSITIONS = 48  # of a longer text, the first
_INSIDE = 0.5  # weight of a unit that fires inside a word


@dataclass(frozen=True)
class PredictionUnit:
    """A unit that makes the most likely token at its position more likely.

    Attributes:
        position: The token at which its value is largest, special tokens other than blanks left out.
        predicted: The id of the most likely token there.
        beside: Its largest value at any other word, as a share of its largest value; at least 0.
        before, after: The probability of every token there, with the unit and without it.
    """

    layer: int
    position: int
    unit: int
    predicted: int
    beside: float
    before: np.ndarray
    after: np.ndarray

    @property
    def raised(self) -> float:
        """What the unit adds to the probability of the predicted token."""
        return float(self.before[self.predicted] - self.after[self.predicted])


def predicts_at(trace: Trace, stack: str, position: int) -> bool:
    """Return whether a token is predicted at a position: anywhere in a decoder, else at a blank."""
    checkpoint = trace.checkpoint
    if f"{stack}.logits" not in trace:  # of a long text, only some layers are recorded
        return False
    return stack == "decoder" or trace.tokens(stack)[position].id == checkpoint.special.mask


def probabilities_at(trace: Trace, stack: str, position: int) -> np.ndarray:
    """Return the probability of every token at a position."""
    return np.exp(PredictionRows(f"{stack}.logits", (position,), (), ()).log_probabilities(trace)[0])


def prediction_units(trace: Trace, *, count: int = 4) -> tuple[PredictionUnit, ...]:
    """Return units that fire at a token and make the token that is predicted there more likely.

    There is at most one per token: of those that fire there clearly more than at any other word (``MOST_BESIDE``), the
    one that raises the prediction most to first order. The prediction is a whole word, and each unit adds at least
    ``LEAST_RAISED`` to its probability, measured by a run without the unit. Units that add more come first, preferably
    if they fire at one token only, at the beginning of a word, and for a rarer prediction. The result is empty if a
    model predicts no words.
    """
    stack = "decoder" if trace.checkpoint.config.has_decoder else "encoder"
    positions = [token.index for token in trace.tokens(stack) if predicts_at(trace, stack, token.index)]
    positions = [at for at in positions if _may_be_shown(trace, stack, at)][:_POSITIONS]
    if not positions or why_no_words(trace.checkpoint, stack) is not None:
        return ()
    found = []
    for one in _estimates(trace, stack, positions)[:count]:
        after = probabilities_at(without_unit(trace, stack, one.layer, one.unit), stack, one.position)
        found.append(replace(one, after=after))
    weights = {one.position: _weight(trace, stack, one) for one in found}
    found = [one for one in found if one.raised >= LEAST_RAISED]
    return tuple(sorted(found, key=lambda one: -one.raised * weights[one.position]))


def _estimates(trace: Trace, stack: str, positions: Sequence[int]) -> list[PredictionUnit]:
    """Return for each position the unit that raises the prediction there most to first order.

    The best comes first; ``after`` of each is not yet known.
    """
    checkpoint, (matrix, _) = trace.checkpoint, vocabulary_matrix(trace.checkpoint, stack)
    tokens = trace.tokens(stack)
    read = [token.index for token in tokens if not token.special or token.id == checkpoint.special.mask]
    marked = any(token.display.startswith("·") for token in tokens)
    best: dict[int, tuple[float, PredictionUnit]] = {}
    for position in positions:
        before = probabilities_at(trace, stack, position)
        predicted = int(before.argmax())
        if not is_word(checkpoint.tokenizer.display(predicted), marked=marked) or predicted == tokens[position].id:
            continue
        # d p / d logits, times the vocabulary matrix: how p changes with the vector before the vocabulary
        slope = before[predicted] * (matrix[predicted] - before.astype(matrix.dtype) @ matrix)
        for layer in range(trace.n_layers(stack)):
            hidden = trace.values(f"{stack}.layers.{layer}.feed_forward.hidden")[read]
            peaks, beside = peaks_of(hidden)
            units = np.flatnonzero((peaks == read.index(position)) & (beside <= MOST_BESIDE))
            if not len(units):
                continue
            vectors = output_vectors(checkpoint, stack, layer, units.tolist())
            added = hidden[read.index(position), units][:, None] * vectors
            raises = direct_path(trace, stack, layer, position, added) @ slope
            at = int((raises * (1 - beside[units])).argmax())
            one = PredictionUnit(layer, position, int(units[at]), predicted, float(beside[units[at]]), before, before)
            rank = float(raises[at]) * _weight(trace, stack, one)
            if position not in best or rank > best[position][0]:
                best[position] = rank, one
    return [one for _, one in sorted(best.values(), key=lambda each: -each[0])]


def _weight(trace: Trace, stack: str, one: PredictionUnit) -> float:
    """Return how plain a unit is: the more, the fewer tokens it fires at.

    A token that begins a word and a rarer prediction count more.
    A vocabulary is ordered by frequency, so log₂ of an id is larger for a rarer word.
    """
    token = trace.tokens(stack)[one.position]
    inside = not (token.special or token.display.startswith("·"))
    return (1 - one.beside) * log2(2 + one.predicted) * (_INSIDE if inside else 1.0)


def _may_be_shown(trace: Trace, stack: str, position: int) -> bool:
    token = trace.tokens(stack)[position]
    return not token.special or token.id == trace.checkpoint.special.mask
