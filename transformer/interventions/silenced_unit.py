"""What one hidden unit changes: the same text with the unit at 0 at every token."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from transformer.predictions.answer_probabilities import prediction_rows
from transformer.predictions.sweep import Replacement, sweep, text_of
from transformer.predictions.target import log_probabilities
from transformer.runs.traces import Trace


class WithAndWithout(NamedTuple):
    """The same probabilities with the unit and without it."""

    before: np.ndarray
    after: np.ndarray


def unit_effect(trace: Trace, stack: str, layer: int, unit: int, *, position: int) -> WithAndWithout:
    """Return the probability of every class, or every next token at ``position``: [class] or [vocabulary]."""
    return WithAndWithout(*_probabilities(trace, stack, layer, unit, [position])[:, 0])


def unit_effect_on_output(trace: Trace, stack: str, layer: int, unit: int) -> WithAndWithout | None:
    """Return the probability of each token of the output, [token]; ``None`` without output or its logits."""
    rows = prediction_rows(trace) if f"{trace.stacks[-1]}.logits" in trace else None
    if rows is None or not rows.rows or rows.predicts_nothing:
        return None
    return WithAndWithout(*map(rows.chosen, _probabilities(trace, stack, layer, unit, rows.rows)))


def _probabilities(trace: Trace, stack: str, layer: int, unit: int, positions: Sequence[int]) -> np.ndarray:
    """Return the probabilities with the unit and without it: [2, position, vocabulary or class]."""
    silence = Replacement(f"{stack}.layers.{layer}.feed_forward.hidden", (slice(None), unit), 0.0)
    texts, edits = [text_of(trace)], trace.run.edits
    (found,) = sweep(trace.checkpoint.model, texts, [[silence]], positions=positions, edits=edits)
    return log_probabilities(trace.checkpoint, found.logits.double()).exp().numpy(force=True)
