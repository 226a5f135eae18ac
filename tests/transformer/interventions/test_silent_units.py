"""Units that are removed: the run without one, and the estimate of what that does to the class."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import transformer
from transformer.interventions.experiment import same_tokens
from transformer.interventions.silent_units import class_units, without_unit
from transformer.layers.readable_units import MOST_BESIDE
from transformer.predictions.answer_probabilities import softmax

SENTENCE = "a funny but dull film"


def test_a_run_without_a_unit_is_that_of_a_model_that_lacks_its_output_weights(tiny_checkpoint) -> None:
    checkpoint = tiny_checkpoint("tiny-gpt")
    trace = transformer.trace(checkpoint, SENTENCE)
    silent = without_unit(trace, "decoder", 1, 5)
    weight = checkpoint.model.decoder.layers[1].feed_forward.output_projection.weight
    column = weight[:, 5].detach().clone()
    with torch.no_grad():
        weight[:, 5] = 0
        expected = same_tokens(trace)
        weight[:, 5] = column
    np.testing.assert_allclose(silent.values("decoder.logits"), expected.values("decoder.logits"), atol=1e-6)
    assert np.abs(silent.values("decoder.logits") - trace.values("decoder.logits")).max() > 1e-4


def test_the_units_that_matter_for_the_class_are_found_by_their_gradient() -> None:
    trace = transformer.trace(transformer.load("checkpoints/sentiment"), SENTENCE)
    chances = softmax(trace.values("classifier.logits"))
    best = int(chances.argmax())
    found = class_units(trace)
    assert len({one.position for one in found}) == len(found) == 4
    assert sorted(one.change * (1 - one.beside) for one in found) == [one.change * (1 - one.beside) for one in found]
    assert all(one.change < 0 for one in found), "without it, the predicted class is less likely"
    words = [token.index for token in trace.source if not token.special]
    for one in found:
        hidden = trace.values(f"encoder.layers.{one.layer}.feed_forward.hidden")[:, one.unit]
        assert hidden[one.position] == hidden[words].max() > 0
        assert max(hidden[place] for place in words if place != one.position) <= MOST_BESIDE * hidden[one.position]
        without = softmax(without_unit(trace, "encoder", one.layer, one.unit).values("classifier.logits"))
        assert without[best] - chances[best] == pytest.approx(one.change, rel=0.5)
