"""LayerNorm taken apart gives back what the model computed, and differs from the textbook's other formula."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import transformer
from transformer.layers.layer_norm_steps import norm_names, norm_statistics, norm_steps

SENTENCE = "The train arrives at half past nine."


@pytest.mark.parametrize("kind", ("translator", "gpt", "bert", "sentiment"))
def test_steps_reproduce_the_recorded_output(tiny_checkpoint, kind):
    checkpoint = tiny_checkpoint(kind)
    trace = transformer.trace(checkpoint, SENTENCE)
    for stack in trace.stacks:
        for name in norm_names(trace, stack, 1):
            steps = norm_steps(trace, name, 3)
            module = checkpoint.model.get_submodule(name)
            expected = torch.nn.functional.layer_norm(
                torch.tensor(steps.x), (len(steps.x),), module.weight, module.bias, module.epsilon
            )
            assert np.allclose(steps.output, expected.detach().numpy(), atol=1e-5)
            assert steps.largest_deviation < 1e-5
            assert steps.denominator == pytest.approx(np.sqrt(steps.std**2 + steps.epsilon), rel=1e-5)
            assert np.allclose((steps.x - steps.mean) / steps.denominator, steps.normalized, atol=1e-6)


def test_the_other_formula_differs_by_what_epsilon_does(tiny_checkpoint):
    checkpoint = tiny_checkpoint("bert")
    trace = transformer.trace(checkpoint, SENTENCE)
    steps = norm_steps(trace, "encoder.layers.0.feed_forward_norm", 2)
    by_hand = steps.gain * (steps.x - steps.x.mean()) / (steps.x.std() + steps.epsilon) + steps.bias
    assert np.allclose(steps.textbook, by_hand, atol=1e-5)
    assert 0 < steps.textbook_difference < 1e-3


def test_names_are_those_of_the_layer_and_the_final_one(tiny_checkpoint):
    pre = transformer.trace(tiny_checkpoint("translator"), SENTENCE)
    assert norm_names(pre, "decoder", 1) == (
        "decoder.layers.1.self_attention_norm",
        "decoder.layers.1.cross_attention_norm",
        "decoder.layers.1.feed_forward_norm",
        "decoder.final_norm",
    )
    post = transformer.trace(tiny_checkpoint("bert"), SENTENCE)
    assert norm_names(post, "encoder", 0) == (
        "encoder.layers.0.self_attention_norm",
        "encoder.layers.0.feed_forward_norm",
    )


def test_statistics_before_and_after(tiny_checkpoint):
    trace = transformer.trace(tiny_checkpoint("translator"), SENTENCE)
    name = "encoder.layers.0.self_attention_norm"
    statistics = norm_statistics(trace, name)
    assert np.allclose(statistics.mean_after, 0, atol=1e-5)
    assert np.allclose(statistics.std_after, 1, atol=1e-3)
    assert np.allclose(statistics.std_before, trace.values(f"{name}.input").std(axis=1))
    assert not np.allclose(norm_statistics(trace, name, after="output").std_after, 1, atol=1e-3)
    with pytest.raises(ValueError, match="'sum'.*normalized or output"):
        norm_statistics(trace, name, after="sum")
