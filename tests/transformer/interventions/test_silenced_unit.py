"""What a unit changes, against a run in which its row of W₂ is 0."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import transformer
from transformer.interventions.experiment import same_tokens
from transformer.interventions.silenced_unit import unit_effect, unit_effect_on_output
from transformer.predictions.answer_probabilities import prediction_rows, softmax
from transformer.runs.traces import Trace

SENTENCE = "The old man told us a story."


def without(trace: Trace, stack: str, unit: int) -> Trace:
    """Run the same tokens with a row of W₂ at 0, in layer 1."""
    weight = trace.checkpoint.model.get_submodule(f"{stack}.layers.1.feed_forward.output_projection").weight
    column = weight[:, unit].detach().clone()
    with torch.no_grad():
        weight[:, unit] = 0
        try:
            return same_tokens(trace)
        finally:
            weight[:, unit] = column


@pytest.mark.parametrize("name", ["tiny-translator", "tiny-gpt", "tiny-bert", "tiny-sentiment"])
def test_a_silenced_unit_changes_what_a_row_of_zeros_changes(tiny_checkpoint, name: str) -> None:
    trace = transformer.trace(tiny_checkpoint(name), SENTENCE)
    stack = trace.stacks[-1]
    runs = trace, without(trace, stack, 5)
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
