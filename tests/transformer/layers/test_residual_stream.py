"""The residual identity holds for recorded numbers, and the shares of sub-layers equal the arrays."""

from __future__ import annotations

import numpy as np
import pytest

import transformer
from transformer.layers.residual_stream import contributions, residual_identity, stream_lengths, sublayers

KINDS = ("translator", "gpt", "bert", "sentiment")
SENTENCE = "The old man told us a long story."


@pytest.fixture(params=KINDS)
def traced(request, tiny_checkpoint):
    checkpoint = tiny_checkpoint(request.param)
    return checkpoint, transformer.trace(checkpoint, SENTENCE)


def test_sublayers_follow_the_forward_pass(tiny_checkpoint):
    trace = transformer.trace(tiny_checkpoint("translator"), SENTENCE)
    assert [step.label for step in sublayers(trace, "encoder")] == [
        "0 self-attention", "0 feed-forward", "1 self-attention", "1 feed-forward",
    ]  # fmt: skip
    assert [step.kind for step in sublayers(trace, "decoder")][:3] == [
        "self_attention", "cross_attention", "feed_forward",
    ]  # fmt: skip


def test_each_sublayer_begins_where_the_one_before_ended(traced):
    _, trace = traced
    for stack in trace.stacks:
        steps = sublayers(trace, stack)
        assert np.array_equal(trace.values(steps[0].before), trace.values(f"{stack}.embedding.sum"))
        for earlier, later in zip(steps, steps[1:], strict=False):
            assert np.array_equal(trace.values(earlier.after), trace.values(later.before))


def test_in_plus_update_is_out(traced):
    checkpoint, trace = traced
    for stack in trace.stacks:
        for step in sublayers(trace, stack):
            identity = residual_identity(trace, step, norm=checkpoint.config.norm)
            assert identity.largest_deviation == 0.0
            assert np.abs(identity.update).max() > 0.01  # an update of zero would prove nothing
            if checkpoint.config.norm == "post":
                assert np.array_equal(identity.total, trace.values(f"{step.norm}.input"))
                assert np.array_equal(trace.values(f"{step.norm}.output"), trace.values(step.after))


def test_a_broken_identity_is_seen(tiny_checkpoint):
    trace = transformer.trace(tiny_checkpoint("translator"), SENTENCE)
    step = sublayers(trace, "encoder")[0]
    # Reading a pre-norm model as post-norm uses the wrong location.
    assert residual_identity(trace, step, norm="post").largest_deviation > 0.01


def test_lengths_are_euclidean(traced):
    _, trace = traced
    stack = trace.stacks[-1]
    steps, lengths = stream_lengths(trace, stack)
    assert len(steps) == len(lengths) == len(sublayers(trace, stack)) + 1
    row = trace.values(f"{stack}.layers.0.residual.after_self_attention")[2]
    assert lengths[1, 2] == pytest.approx(float(np.sqrt((row**2).sum())), rel=1e-6)


def test_contributions_are_ratio_and_cosine(traced):
    _, trace = traced
    stack = trace.stacks[-1]
    names, ratio, cosine = contributions(trace, stack)
    steps = sublayers(trace, stack)
    assert names == tuple(step.label for step in steps)
    before, update = trace.values(steps[-1].before)[1], trace.values(steps[-1].update)[1]
    assert ratio[-1, 1] == pytest.approx(np.linalg.norm(update) / np.linalg.norm(before), rel=1e-5)
    expected = before @ update / (np.linalg.norm(update) * np.linalg.norm(before))
    assert cosine[-1, 1] == pytest.approx(expected, abs=1e-5)
    assert np.abs(cosine).max() <= 1.0
