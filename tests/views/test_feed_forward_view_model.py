"""The view model of Feed-forward: the numbers of one token's units, and the text on gated layers."""

from __future__ import annotations

import numpy as np
import pytest

import transformer
from transformer.layers.feed_forward_units import silent_share, unit_words
from ui.shell.selectors import traits_of
from ui.words.texts import page_texts
from views.feed_forward.feed_forward_view_model import feed_forward_view_model

SENTENCE = "The old man told us a story."


@pytest.mark.parametrize("name", ["tiny-translator", "tiny-gpt", "tiny-bert", "tiny-sentiment"])
def test_the_units_of_a_token_are_those_of_the_trace(tiny_checkpoint, name):
    trace = transformer.trace(tiny_checkpoint(name), SENTENCE)
    stack = trace.stacks[0]
    view_model = feed_forward_view_model(trace, stack=stack, layer=99, token=2)
    assert view_model.name == f"{stack}.layers.{trace.n_layers(stack) - 1}.feed_forward"
    hidden = trace.values(f"{view_model.name}.hidden")
    assert view_model.n_units == hidden.shape[-1] and not view_model.is_gated
    assert list(view_model.strongest) == np.argsort(-np.abs(hidden[2]), kind="stable")[:12].tolist()
    assert view_model.n_active == (trace.values(f"{view_model.name}.pre_activation")[2] > 0).sum()
    np.testing.assert_array_equal(view_model.inactive_share(), silent_share(trace, stack))
    share = view_model.inactive_share()[view_model.layer, 2]
    assert share == pytest.approx(1 - view_model.n_active / view_model.n_units)
    place = (stack, view_model.layer, 2)
    found = unit_words(trace, *place, units=view_model.strongest, words=8)
    assert [one.up for one in found] == [one.up[:8] for one in view_model.words]
    lengths = view_model.added_lengths(view_model.strongest)
    assert lengths == pytest.approx([one.length for one in view_model.words])
    assert trace.values(view_model.read).shape == (len(view_model.tokens), trace.checkpoint.config.d_model)


def test_words_are_computed_once(tiny_checkpoint):
    trace = transformer.trace(tiny_checkpoint("tiny-gpt"), SENTENCE)
    view_model = feed_forward_view_model(trace, stack="decoder", token=99)
    assert view_model.token == len(view_model.tokens) - 1
    assert view_model.words is view_model.words and view_model.strongest is view_model.strongest


def test_of_gated_layers_nobody_says_that_most_units_are_inactive(family):
    config = family("hf-llama").config
    assert config.gated
    for text, most in zip(page_texts("feed_forward"), ("Most units", "La plupart des unités"), strict=True):
        assert not any(most in sentence for sentence in text.look_for_of(traits_of(config)))
        assert most in text.look_for[1]
