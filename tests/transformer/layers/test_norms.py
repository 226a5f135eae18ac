"""LayerNorm step by step equals the model's result, and differs from the textbook's other formula.

Additions and norms of one vector: the identities hold, in the order of the model, for every kind and family.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch

import transformer
from tests.foreign_checkpoints import FOREIGN
from transformer import Trace
from transformer.layers.norms import add_and_norm, norm_names, norm_parameters, norm_statistics, norm_steps

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


STORY = "The old man told us a story."
TINY = ("translator", "gpt", "bert", "sentiment")


def check(trace: Trace) -> None:
    order = trace.checkpoint.config.norm
    for stack in trace.stacks:
        for layer in range(trace.n_layers(stack)):
            for name in norm_names(trace, stack, layer):
                halves = add_and_norm(trace, stack, layer, name, 2)
                assert any(half.norm == name for half in halves)
                inside = halves[0].sublayer != ""
                assert inside == (name.startswith(f"{stack}.layers."))
                kinds = [half.kind for half in halves]
                if inside:
                    assert kinds == ["add", "norm"] if order == "post" else kinds[0] == "norm" and kinds[-1] == "add"
                for half in halves:
                    parts = half.vectors
                    if half.kind == "add":
                        first, update, total = parts.values()
                        np.testing.assert_allclose(first + update, total, atol=1e-4)
                    else:
                        gain, bias, _ = norm_parameters(trace.checkpoint, half.norm)
                        shift = 0 if bias is None else bias
                        np.testing.assert_allclose(parts["normalized"] * gain + shift, parts["scaled"], atol=1e-4)
                if inside and order == "post":
                    into = trace.values(f"{halves[1].norm}.input")[2]
                    np.testing.assert_array_equal(halves[0].vectors["sum"], into)
                elif inside and "x" in halves[-1].vectors:
                    np.testing.assert_array_equal(halves[-1].vectors["x"], halves[0].vectors["x"])


@pytest.mark.parametrize("kind", TINY)
def test_of_our_own(tiny_checkpoint: Callable, kind: str) -> None:
    check(transformer.trace(tiny_checkpoint(kind), STORY))


@pytest.mark.parametrize("name", FOREIGN)
def test_of_other_families(family: Callable, name: str) -> None:
    trace = transformer.trace(family(name), STORY)
    check(trace)
    first, *_, last = add_and_norm(trace, trace.stacks[0], 0, f"{trace.stacks[0]}.layers.0.feed_forward_norm", 2)
    assert ("x_and_attention" in (first.vectors | last.vectors)) == (name == "hf-neox")


def test_what_gemma_writes_is_normalised_before_it_is_added(family: Callable) -> None:
    trace = transformer.trace(family("hf-gemma2"), STORY)
    before, behind, add = add_and_norm(trace, "decoder", 0, "decoder.layers.0.self_attention_norm", 2)
    assert before.norm != behind.norm and "written" in behind.vectors
    np.testing.assert_array_equal(behind.vectors["scaled"], add.vectors["update"])
    assert add_and_norm(trace, "decoder", 0, behind.norm, 2)[1].norm == behind.norm
