"""A step's reshaping equals the distribution of sampling; its attention equals the trace's row."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import transformer
from transformer.predictions.decoding_steps import (
    confidence,
    n_forced,
    reshape_step,
    step_attention,
    without_most_activations,
)
from transformer.runs.decoding_strategies import reshape_logits

SENTENCE = "The children are playing in the street."


def decoded(checkpoint, strategy=None, **options):
    return transformer.decode(checkpoint, SENTENCE, strategy, record_steps=True, **options)


def test_final_chances_are_those_that_sampling_drew_from(tiny_checkpoint):
    strategy = transformer.Sample(temperature=0.7, top_k=12, top_p=0.8, seed=3)
    decoding = decoded(tiny_checkpoint("translator"), strategy)
    for step in decoding.steps:
        reshaping = reshape_step(step, temperature=0.7, top_k=12, top_p=0.8)
        chosen = next(row for row in reshaping.rows if row.chosen)
        assert chosen.piece == step.chosen.display and chosen.kept
        assert chosen.final == pytest.approx(step.chosen.chance, abs=1e-6)
        assert sum(row.final for row in reshaping.rows) + reshaping.rest == pytest.approx(1.0, abs=1e-6)
        assert reshaping.n_kept <= 12
        assert all(row.final == 0 for row in reshaping.rows if not row.kept)


def test_counts_and_scaling(tiny_checkpoint):
    step = decoded(tiny_checkpoint("translator")).steps[0]
    reshaping = reshape_step(step, temperature=2.0, top_k=3, shown=8)
    assert len(reshaping.rows) == 8 and reshaping.n_kept == 3
    assert reshaping.n_possible == len(step.logits) - 2  # <pad> and <s> are never generated
    assert [row.kept for row in reshaping.rows] == [True] * 3 + [False] * 5
    for row in reshaping.rows:
        assert row.scaled == pytest.approx(row.logit / 2)
    kept = reshape_logits(torch.tensor(step.logits), temperature=2.0, top_k=3).softmax(-1)
    assert reshaping.rows[0].final == pytest.approx(float(kept.max()), abs=1e-6)
    assert reshaping.rest == pytest.approx(0.0, abs=1e-6)


def test_an_unlikely_choice_is_still_listed(tiny_checkpoint):
    decoding = decoded(tiny_checkpoint("gpt"), transformer.Sample(temperature=5.0, seed=1, max_new_tokens=12))
    for step in decoding.steps:
        rows = reshape_step(step, shown=5).rows
        assert len(rows) == 5 and sum(row.chosen for row in rows) == 1
    unlikely = [s for s in decoding.steps if s.chosen.id not in [c.id for c in s.candidates[:5]]]
    assert unlikely and reshape_step(unlikely[0], shown=5).rows[-1].chosen


def test_confidence_is_the_models_own(tiny_checkpoint):
    decoding = decoded(tiny_checkpoint("translator"), transformer.Sample(temperature=3.0, seed=2))
    sure = confidence(decoding)
    assert np.log(sure.probability).sum() == pytest.approx(decoding.log_probability, rel=1e-5)
    for step, probability, other in zip(decoding.steps, sure.probability, sure.runner_up, strict=True):
        best = softmax(step.logits).argmax()
        if step.chosen.id == best:
            assert other <= probability
        else:
            assert other == pytest.approx(softmax(step.logits)[best], rel=1e-4)


def softmax(logits):
    return torch.tensor(logits).softmax(-1).numpy()


@pytest.mark.parametrize("kind, attention", [("translator", "cross"), ("translator", "self"), ("gpt", "self")])
def test_attention_of_a_step_is_the_row_of_the_trace(tiny_checkpoint, kind, attention):
    checkpoint = tiny_checkpoint(kind)
    decoding = without_most_activations(decoded(checkpoint))
    trace = transformer.trace(checkpoint, SENTENCE)
    first = len(trace.target) - len(decoding.tokens)  # the row that predicts token 0
    view = trace.attention("decoder", 1, attention)
    for step in range(len(decoding.steps)):
        found = step_attention(checkpoint, decoding, SENTENCE, step=step, layer=1, kind=attention)
        n_keys = len(found.key)
        assert found.weights.shape == (2, n_keys)
        assert np.allclose(found.weights, view.weights[:, first + step, :n_keys], atol=1e-5)
        assert np.array_equal(found.allowed, view.allowed[first + step, :n_keys])
        assert found.key.ids == view.key.ids[:n_keys]
        assert found.weights.sum(axis=-1) == pytest.approx(1.0, abs=1e-5)


def test_only_attention_is_kept(tiny_checkpoint):
    full = decoded(tiny_checkpoint("translator"))
    kept = without_most_activations(full)
    assert "encoder.layers.0.self_attention.weights" in full.steps[0].activations
    assert set(kept.steps[0].activations) == {
        f"decoder.layers.{layer}.{kind}_attention.{what}"
        for layer in range(2)
        for kind in ("self", "cross")
        for what in ("weights", "allowed")
    }
    assert kept.text == full.text


def test_attention_that_was_not_recorded_is_named(tiny_checkpoint):
    checkpoint = tiny_checkpoint("translator")
    unrecorded = transformer.decode(checkpoint, SENTENCE)
    with pytest.raises(ValueError, match=r"decoder\.layers\.0\.cross_attention\.weights; it has no recording"):
        step_attention(checkpoint, unrecorded, SENTENCE, step=0, layer=0, kind="cross")
    with pytest.raises(ValueError, match=r"layers\.7\.cross.*it has decoder\.layers\.0"):
        step_attention(checkpoint, decoded(checkpoint), SENTENCE, step=0, layer=7, kind="cross")


def test_forced_tokens_are_counted(tiny_checkpoint):
    checkpoint = tiny_checkpoint("translator")
    forced = "Le chat dort"
    decoding = decoded(checkpoint, forced=forced)
    count = n_forced(checkpoint, forced)
    assert checkpoint.tokenizer.decode(decoding.tokens.ids[:count]) == forced
    assert n_forced(checkpoint, " ") == 0
