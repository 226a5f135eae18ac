"""The optimised passes change nothing that users of PyTorch rely on."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
import torch
from torch import nn

from tests.transformer.tiny import random_model, run
from transformer.probes import Probe, record
from transformer.runs.activation_arrays import activations_of


def test_a_probe_runs_all_its_forward_hooks_in_order_and_takes_what_they_return() -> None:
    probe = Probe("position")
    seen = []
    probe.register_forward_hook(lambda module, inputs, output: seen.append(float(output)))
    doubling = probe.register_forward_hook(lambda module, inputs, output: output * 2)
    probe.register_forward_hook(lambda module, inputs, output: seen.append(float(output)))
    assert probe(torch.tensor(3.0)) == 6.0
    assert seen == [3.0, 6.0]
    doubling.remove()
    assert probe(torch.tensor(3.0)) == 3.0


def test_a_part_that_is_replaced_is_the_part_that_runs() -> None:
    model = random_model.__wrapped__()
    plain = run(model)
    attention = model.decoder.layers[0].cross_attention
    attention.value_projection = nn.Linear(*reversed(attention.value_projection.weight.shape))
    assert not torch.equal(run(model), plain)


def test_a_part_that_is_deleted_is_gone() -> None:
    model = random_model.__wrapped__()
    del model.decoder.layers[0].cross_attention.value_projection
    with pytest.raises(AttributeError, match="value_projection"):
        run(model)


def test_a_copied_model_is_a_model_of_its_own() -> None:
    model = random_model()
    plain = run(model)
    for twin in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert torch.equal(run(twin), plain)
        assert twin.decoder.layers[0].feed_forward is not model.decoder.layers[0].feed_forward
        assert twin.decoder.layers[0].feed_forward is twin.get_submodule("decoder.layers.0.feed_forward")
        with torch.no_grad():
            twin.decoder.layers[0].feed_forward.output_projection.weight.add_(1.0)
        assert not torch.equal(run(twin), plain)
        assert torch.equal(run(model), plain)


def test_a_copy_to_look_at_shares_the_weights_and_nothing_else() -> None:
    model = random_model()
    twin = model.copy_sharing_weights(lambda name: name.endswith("bias"))
    seen = []
    twin.decoder.register_forward_hook(lambda *_: seen.append(True))
    assert torch.equal(run(model), run(twin)) and seen == [True]
    for (name, own), shared in zip(model.named_parameters(), twin.parameters(), strict=True):
        assert shared is not own and shared.data_ptr() == own.data_ptr()
        assert shared.requires_grad == name.endswith("bias")


def test_dropout_drops_while_training_only() -> None:
    torch.manual_seed(0)
    dropout, x = random_model.__wrapped__(dropout=0.25).train().decoder.layers[0].dropout, torch.ones(10_000)
    torch.manual_seed(0)
    dropped = dropout(x)
    assert float((dropped == 0).float().mean()) == pytest.approx(0.25, abs=0.02)
    assert dropped.unique().tolist() == pytest.approx([0.0, 1 / 0.75])
    torch.manual_seed(0)
    assert torch.equal(dropped, nn.Dropout(0.25)(x)), "a resumed training draws what torch's own dropout draws"
    assert dropout.eval()(x) is x


def test_recorded_activations_are_all_there_read_only_and_their_own() -> None:
    model = random_model()
    with record() as recording:
        run(model)
    activations = activations_of(model, recording)
    expected = {name: tensor[0].numpy(force=True).copy() for name, tensor in recording.tensors.items()}
    recording.tensors.clear()
    assert list(activations) == list(expected)
    assert set(activations) == set(model.probes)
    assert len(activations) == len(expected)
    assert "decoder.logits" in activations
    assert "decoder.nothing" not in activations
    for name, activation in activations.items():
        assert activation.name == name
        assert activation.axes == model.probes[name].axes
        np.testing.assert_array_equal(activation.values, expected[name])
        with pytest.raises(ValueError, match="read-only"):
            activation.values[...] = 0
    with pytest.raises(KeyError):
        activations["decoder.nothing"]
