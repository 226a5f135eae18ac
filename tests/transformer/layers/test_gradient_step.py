from __future__ import annotations

import copy

import numpy as np
import pytest
import torch

import transformer
from transformer.layers.gradient_step import _gradients_by_way, training_step


def _tied(checkpoint):
    """Return the same checkpoint with the projection sharing the embedding matrix."""
    from dataclasses import replace

    config = replace(checkpoint.config, tie_embeddings=True)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = transformer.build_model(config).eval()
    return replace(checkpoint, model=model)


@pytest.mark.parametrize(("kind", "stack"), [("translator", "encoder"), ("translator", "decoder"), ("gpt", "decoder")])
def test_untied_only_the_rows_that_were_looked_up_move(tiny_checkpoint, kind, stack):
    checkpoint = tiny_checkpoint(kind)
    trace = transformer.trace(checkpoint, "The dog sleeps.", target=" under the table")
    step = training_step(trace, stack=stack)
    looked_up = sorted(set(trace.tokens(stack).ids))
    assert not step.tied
    assert np.flatnonzero(step.by_lookup).tolist() == looked_up
    assert set(np.flatnonzero(step.moved)) <= set(looked_up)
    np.testing.assert_allclose(step.moved, step.by_lookup, atol=2e-7)
    assert (step.by_projection > 0).all()  # softmax gives every row of the projection a gradient


@pytest.mark.parametrize(("kind", "stack"), [("translator", "encoder"), ("gpt", "decoder"), ("bert", "encoder")])
def test_tied_every_row_moves_and_the_two_ways_add_up(tiny_checkpoint, kind, stack):
    checkpoint = _tied(tiny_checkpoint(kind))
    trace = transformer.trace(checkpoint, "The dog sleeps.")
    step = training_step(trace, stack=stack, rate=0.5)
    assert step.tied and (step.by_projection > 0).all()
    looked_up = {token.id for sequence in (trace.source, trace.target) if sequence for token in sequence}
    assert set(np.flatnonzero(step.by_lookup)) == set(step.read.ids)
    assert set(step.read.ids) <= looked_up | {transformer.text.tokenizer.MASK_ID}
    assert (step.moved <= step.by_lookup + step.by_projection + 1e-6).all()
    untouched = step.by_lookup == 0
    np.testing.assert_allclose(step.moved[untouched], step.by_projection[untouched], atol=1e-6)


def test_gradients_of_both_ways_sum_to_the_shared_matrix_s_own(tiny_checkpoint):
    checkpoint = _tied(tiny_checkpoint("translator"))
    inputs = (torch.tensor([[5, 9, 5, 2]]), torch.tensor([[1, 7, 30]]))
    labels = torch.tensor([[7, 30, 2]])
    lookup, projection = _gradients_by_way(checkpoint.model, inputs, labels, "encoder")
    model = copy.deepcopy(checkpoint.model)
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
    padded = transformer.trace(checkpoint, "The dog sleeps.", target="Le chien dort.", source_pads=3, target_pads=2)
    steps = [training_step(trace, stack="encoder") for trace in (plain, padded)]
    np.testing.assert_array_equal(steps[0].moved, steps[1].moved)


def test_a_sentence_without_a_blank_hides_the_token_that_is_asked_for(tiny_checkpoint):
    checkpoint = tiny_checkpoint("bert")
    trace = transformer.trace(checkpoint, "The dog sleeps.")
    step = training_step(trace, stack="encoder", masked=2)
    assert step.read[2].display == "<mask>" and step.n_asked == 1
    with pytest.raises(ValueError, match="masked is 99"):
        training_step(trace, stack="encoder", masked=99)


def test_a_classifier_learns_the_class_that_it_is_told(tiny_checkpoint):
    checkpoint = tiny_checkpoint("sentiment")
    trace = transformer.trace(checkpoint, "The dog sleeps.")
    losses = [training_step(trace, stack="encoder", label=label).loss_before for label in (0, 1)]
    assert np.exp(-np.array(losses)).sum() == pytest.approx(1, abs=1e-5)
    step = training_step(trace, stack="encoder")
    assert step.by_projection is None and not step.tied
    with pytest.raises(ValueError, match="label is 2"):
        training_step(trace, stack="encoder", label=2)


def test_a_rate_of_zero_is_refused(tiny_checkpoint):
    checkpoint = tiny_checkpoint("gpt")
    with pytest.raises(ValueError, match="rate is 0"):
        training_step(transformer.trace(checkpoint, "The dog."), stack="decoder", rate=0)


@pytest.mark.parametrize("kind", ["translator", "gpt", "bert", "sentiment"])
def test_blocks_hold_every_parameter_once_and_their_gradients_make_up_the_whole(tiny_checkpoint, kind):
    checkpoint = tiny_checkpoint(kind)
    trace = transformer.trace(checkpoint, "The dog sleeps.")
    step = training_step(trace, stack=trace.stacks[0], rate=0.01, masked=2)
    untrained = sum(p.numel() for n, p in checkpoint.model.named_parameters() if n.startswith("next_sentence."))
    assert (untrained > 0) == (kind == "bert")
    assert sum(block.numbers for block in step.blocks) == checkpoint.model.n_parameters - untrained
    assert len({(block.stack, block.layer, block.part) for block in step.blocks}) == len(step.blocks)
    for block in step.blocks:
        assert block.gradient > 0
        assert block.moved == pytest.approx(0.01 * block.gradient, rel=1e-2)
    names = {block.part for block in step.blocks if block.layer is not None}
    assert {"self_attention", "feed_forward", "norms"} <= names and not any(name.endswith("_norm") for name in names)


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


def test_an_unknown_optimizer_is_refused(tiny_checkpoint):
    checkpoint = tiny_checkpoint("gpt")
    with pytest.raises(ValueError, match="optimizer is 'magic'; choose one of sgd, adam"):
        training_step(transformer.trace(checkpoint, "The dog."), stack="decoder", optimizer="magic")
