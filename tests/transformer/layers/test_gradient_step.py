"""One training step: gradients by their two ways to E, what moves, and that the checkpoint stays."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch

import transformer
from tests.transformer.tiny import random_model
from transformer.layers.gradient_step import _gradients_by_way, training_step


def test_gradients_of_both_ways_sum_to_the_shared_matrix_s_own():
    model = copy.deepcopy(random_model(tie_embeddings=True))
    inputs = (torch.tensor([[5, 9, 5, 2]]), torch.tensor([[1, 7, 20]]))
    labels = torch.tensor([[7, 20, 2]])
    lookup, projection = _gradients_by_way(model, inputs, labels, "encoder")
    logits = model(*inputs)
    torch.nn.functional.cross_entropy(logits[0], labels[0]).backward()
    torch.testing.assert_close(lookup + projection, model.encoder.embedding.table.weight.grad, atol=1e-6, rtol=1e-4)


@pytest.mark.parametrize("kind", ["translator", "gpt", "bert", "sentiment"])
def test_the_loss_falls_and_the_checkpoint_stays_as_it_is(tiny_checkpoint, kind):
    checkpoint = tiny_checkpoint(kind)
    before = {name: tensor.clone() for name, tensor in checkpoint.model.state_dict().items()}
    trace = transformer.trace(checkpoint, "The dog sleeps.")
    step = training_step(trace, stack=trace.stacks[0], rate=0.01, masked=2)
    assert step.loss_after < step.loss_before
    assert step.n_asked == (1 if kind in ("bert", "sentiment") else len(trace.prediction))
    for name, tensor in checkpoint.model.state_dict().items():
        assert torch.equal(tensor, before[name])
    assert all(parameter.grad is None for parameter in checkpoint.model.parameters())


def test_pads_change_nothing(tiny_checkpoint):
    checkpoint = tiny_checkpoint("translator")
    plain = transformer.trace(checkpoint, "The dog sleeps.", target="Le chien dort.")
    padded = transformer.trace(checkpoint, "The dog sleeps.", target="Le chien dort.", source_pads=3)
    steps = [training_step(trace, stack="encoder") for trace in (plain, padded)]
    np.testing.assert_array_equal(steps[0].moved, steps[1].moved)


def test_a_sentence_without_a_blank_hides_the_token_that_is_asked_for(tiny_checkpoint):
    trace = transformer.trace(tiny_checkpoint("bert"), "The dog sleeps.")
    step = training_step(trace, stack="encoder", masked=2)
    assert step.read[2].display == "<mask>" and step.n_asked == 1


def test_a_classifier_learns_the_class_that_it_is_told(tiny_checkpoint):
    trace = transformer.trace(tiny_checkpoint("sentiment"), "The dog sleeps.")
    losses = [training_step(trace, stack="encoder", label=label).loss_before for label in (0, 1)]
    assert np.exp(-np.array(losses)).sum() == pytest.approx(1, abs=1e-5)
    step = training_step(trace, stack="encoder")
    assert step.by_projection is None and not step.tied


def test_the_gradient_of_a_row_is_what_autograd_says(tiny_checkpoint):
    checkpoint = tiny_checkpoint("gpt")
    trace = transformer.trace(checkpoint, "The dog sleeps.")
    step = training_step(trace, stack="decoder")
    model = copy.deepcopy(checkpoint.model)
    logits = model(torch.tensor([trace.target.ids]))
    torch.nn.functional.cross_entropy(logits[0], torch.tensor(trace.prediction.ids)).backward()
    rows = model.decoder.embedding.table.weight.grad.norm(dim=-1)
    np.testing.assert_allclose(step.gradient, rows, rtol=1e-4, atol=1e-7)
    block = next(block for block in step.blocks if block.part == "self_attention" and block.layer == 1)
    grads = [p.grad for p in model.decoder.layers[1].self_attention.parameters() if p.grad is not None]
    assert block.gradient == pytest.approx(float(torch.cat([g.flatten() for g in grads]).norm()), rel=1e-4)


def test_adam_moves_every_row_with_a_gradient_by_the_rate_times_the_root_of_the_width(tiny_checkpoint):
    checkpoint = tiny_checkpoint("translator")
    trace = transformer.trace(checkpoint, "The dog sleeps.")
    step = training_step(trace, stack="encoder", rate=0.001, optimizer="adam")
    moved = np.flatnonzero(step.moved)
    assert moved.tolist() == sorted(set(trace.source.ids)) == np.flatnonzero(step.gradient).tolist()
    np.testing.assert_allclose(step.moved[moved], 0.001 * checkpoint.config.d_model**0.5, rtol=0.02)
    assert step.gradient[moved].max() > 1.2 * step.gradient[moved].min()  # unequal gradients give equal moves
    assert step.loss_after < step.loss_before and step.optimizer == "adam"


@pytest.mark.parametrize(
    ("kind", "given", "problem"),
    [
        ("gpt", {"rate": 0}, "rate is 0"),
        ("gpt", {"optimizer": "magic"}, "optimizer is 'magic'"),
        ("bert", {"masked": 99}, "masked is 99"),
        ("sentiment", {"label": 2}, "label is 2"),
    ],
)
def test_what_makes_no_step_is_refused(tiny_checkpoint, kind, given, problem):
    trace = transformer.trace(tiny_checkpoint(kind), "The dog.")
    with pytest.raises(ValueError, match=problem):
        training_step(trace, stack=trace.stacks[0], **given)
