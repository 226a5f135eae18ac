"""What a unit changes, against a run in which its row of W₂ is 0."""

from __future__ import annotations

import numpy as np
import pytest

import transformer
from tests.transformer.interventions.rows_of_zeros import without_row
from transformer.interventions.silenced_unit import unit_effect, unit_effect_on_output
from transformer.predictions.answer_probabilities import prediction_rows, softmax

SENTENCE = "The old man told us a story."


@pytest.mark.parametrize("name", ["tiny-translator", "tiny-gpt", "tiny-bert", "tiny-sentiment"])
def test_a_silenced_unit_changes_what_a_row_of_zeros_changes(tiny_checkpoint, name: str) -> None:
    trace = transformer.trace(tiny_checkpoint(name), SENTENCE)
    stack = trace.stacks[-1]
    runs = trace, without_row(trace, stack, 1, 5)
    for found, run in zip(unit_effect(trace, stack, 1, 5, position=1), runs, strict=True):
        if name == "tiny-sentiment":
            expected = softmax(run.values("classifier.logits"))
        else:
            logits = run.values(f"{stack}.logits")[1].astype(np.float64)
            if stack == "decoder":
                logits[list(trace.checkpoint.framing.never)] = -np.inf  # never generated
            expected = softmax(logits)
        np.testing.assert_allclose(found, expected, atol=1e-6)
    output = unit_effect_on_output(trace, stack, 1, 5)
    assert (output is None) == (name in ("tiny-bert", "tiny-sentiment"))
    if output is not None:
        rows = prediction_rows(trace)
        for found, run in zip(output, runs, strict=True):
            np.testing.assert_allclose(found, np.exp(rows.chosen(rows.log_probabilities(run))), atol=1e-6)
