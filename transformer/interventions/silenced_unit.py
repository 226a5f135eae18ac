"""What one hidden unit of a feed-forward layer changes: a second run, in which it is 0 at every token."""

from typing import NamedTuple

import numpy as np

from transformer.interventions.experiment import without_unit
from transformer.predictions.answer_probabilities import PredictionRows, prediction_rows, softmax
from transformer.runs.traces import Trace


class WithAndWithout(NamedTuple):
    """The same probabilities with the unit and without it."""

    before: np.ndarray
    after: np.ndarray


def unit_effect(trace: Trace, stack: str, layer: int, unit: int, *, position: int) -> WithAndWithout:
    """Return the probability of every class, or every next token at ``position``: [class] or [vocabulary]."""
    return WithAndWithout(
        *(_probabilities(run, stack, position) for run in (trace, without_unit(trace, stack, layer, unit)))
    )


def unit_effect_on_output(trace: Trace, stack: str, layer: int, unit: int) -> WithAndWithout | None:
    """Return the probability of each token of the output, [token]; ``None`` without output or its logits."""
    rows = prediction_rows(trace) if f"{trace.stacks[-1]}.logits" in trace else None
    if rows is None or not rows.rows or rows.predicts_nothing:
        return None
    runs = trace, without_unit(trace, stack, layer, unit)
    return WithAndWithout(*(np.exp(rows.chosen(rows.log_probabilities(run))) for run in runs))


def _probabilities(run: Trace, stack: str, position: int) -> np.ndarray:
    if run.checkpoint.config.n_classes:
        return softmax(run.values("classifier.logits"))
    return np.exp(PredictionRows(f"{stack}.logits", (position,), (), ()).log_probabilities(run)[0])
