"""Units that raise a prediction: the criteria, and each effect by a model that lacks the unit."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import transformer
from transformer.interventions.experiment import same_tokens
from transformer.interventions.prediction_units import LEAST_RAISED, prediction_units, predicts_at
from transformer.layers.readable_units import MOST_BESIDE

SUNDAY = "My grandmother bakes apple pie every Sunday."
BLANK = "My grandmother bakes apple pie every ___."


def trace_of(name: str, sentence: str) -> transformer.Trace:
    strategy = transformer.Greedy(1) if name == "gpt-en" else None
    return transformer.trace(transformer.load(f"checkpoints/{name}"), sentence, strategy=strategy)


@pytest.mark.parametrize("name, sentence", [("gpt-en", SUNDAY), ("bert-en", BLANK), ("en-fr", SUNDAY)])
def test_the_prediction_is_less_likely_without_the_unit(name: str, sentence: str) -> None:
    trace = trace_of(name, sentence)
    checkpoint, stack = trace.checkpoint, trace.stacks[-1]
    found = prediction_units(trace)
    assert found
    assert len({one.position for one in found}) == len(found), "one unit per token"
    never = list(checkpoint.framing.never) if stack == "decoder" else []
    for one in found:
        assert predicts_at(trace, stack, one.position)
        weight = checkpoint.model.get_submodule(f"{stack}.layers.{one.layer}.feed_forward.output_projection").weight
        column = weight[:, one.unit].detach().clone()
        with torch.no_grad():
            weight[:, one.unit] = 0
            without = same_tokens(trace).values(f"{stack}.logits")[one.position]
            weight[:, one.unit] = column
        chances = []
        for logits in (trace.values(f"{stack}.logits")[one.position], without):
            powers = np.exp(logits.astype(np.float64))
            powers[never] = 0
            chances.append(powers / powers.sum())
        assert one.predicted == chances[0].argmax()
        np.testing.assert_allclose(one.before, chances[0], atol=1e-6)
        np.testing.assert_allclose(one.after, chances[1], atol=1e-5)
        assert one.raised >= LEAST_RAISED
        hidden = trace.values(f"{stack}.layers.{one.layer}.feed_forward.hidden")[:, one.unit]
        read = [t.index for t in trace.tokens(stack) if not t.special or t.id == checkpoint.special.mask]
        assert hidden[one.position] == hidden[read].max() > 0
        assert max(hidden[at] for at in read if at != one.position) <= MOST_BESIDE * hidden[one.position]


def test_a_unit_for_a_rare_word_comes_before_one_that_fires_inside_a_word() -> None:
    trace = trace_of("gpt-en", SUNDAY)
    every, akes = prediction_units(trace, count=2)
    assert [trace.target[one.position].display for one in (every, akes)] == ["·every", "akes"]
    assert every.raised < akes.raised


def test_a_text_without_a_blank_and_random_weights_have_none(tiny_checkpoint) -> None:
    assert prediction_units(trace_of("bert-en", SUNDAY)) == ()
    assert prediction_units(transformer.trace(tiny_checkpoint("tiny-gpt"), SUNDAY)) == ()
    assert prediction_units(trace_of("sentiment", SUNDAY)) == ()
