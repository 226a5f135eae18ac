"""A large trace stores little, and returns everything bit for bit."""

from __future__ import annotations

import numpy as np
import pytest

import transformer
from tests.foreign_checkpoints import foreign_checkpoint
from transformer.runs.slim_activations import SlimActivations

SENTENCE = "The dog sleeps under the table."


@pytest.fixture
def slim(monkeypatch: pytest.MonkeyPatch):
    def make(checkpoint: transformer.Checkpoint, **given: object) -> transformer.Trace:
        with monkeypatch.context() as patch:
            patch.setattr("transformer.runs.slim_activations.LARGE", 0)
            return transformer.trace(checkpoint, SENTENCE, **given)

    return make


def same(one: transformer.Trace, other: transformer.Trace) -> None:
    assert one.names() == other.names()
    for name in one.names():
        assert one[name].axes == other[name].axes
        np.testing.assert_array_equal(one.values(name), other.values(name), err_msg=name)


@pytest.mark.parametrize("kind", ["translator", "gpt", "bert", "sentiment"])
def test_every_activation_is_as_it_was(tiny_checkpoint, slim, kind: str) -> None:
    whole, small = transformer.trace(tiny_checkpoint(kind), SENTENCE), slim(tiny_checkpoint(kind))
    assert isinstance(small.activations, SlimActivations)
    assert small.activations.n_bytes < 0.6 * whole.activations.n_bytes, "half of it is attention, in models so narrow"
    assert small.activations.n_numbers == sum(activation.values.size for activation in whole.activations.values())
    same(whole, small)


@pytest.mark.parametrize("name", ["hf-gemma2", "hf-neox", "hf-t5"])
def test_also_of_other_families(slim, tmp_path, name: str) -> None:
    """Windows, caps, parallel layers, biases by distance, a convolution: a second run gives the same."""
    checkpoint = transformer.load(foreign_checkpoint(name, tmp_path))
    same(transformer.trace(checkpoint, SENTENCE), slim(checkpoint))


def test_padding_is_masked_again(tiny_checkpoint, slim) -> None:
    given = {"source_pads": 3, "target_pads": 2}
    checkpoint = tiny_checkpoint("translator")
    same(transformer.trace(checkpoint, SENTENCE, **given), slim(checkpoint, **given))


def test_an_edited_trace_keeps_everything(tiny_checkpoint, slim) -> None:
    """The effect of an edit cannot be recomputed from a layer's input."""
    checkpoint = tiny_checkpoint("gpt")
    edits = [transformer.ablate_head("decoder", layer=0, head=1)]
    edited = slim(checkpoint, edits=edits)
    assert not isinstance(edited.activations, SlimActivations)
    same(transformer.trace(checkpoint, SENTENCE, edits=edits), edited)


def test_a_name_that_is_not_there_is_no_activation(tiny_checkpoint, slim) -> None:
    small = slim(tiny_checkpoint("gpt"))
    assert "decoder.layers.0.feed_forward.hidden" in small
    with pytest.raises(KeyError, match="no activation"):
        small["decoder.layers.0.feed_forward.nothing"]
