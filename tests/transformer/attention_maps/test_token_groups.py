"""A map without some of its keys, and the sums of several rows or columns, against plain numpy."""

from __future__ import annotations

import numpy as np
import pytest

import transformer
from transformer.attention_maps.token_groups import (
    share_left_out,
    sink_keys,
    weight_given,
    weight_received,
    without_keys,
)


@pytest.fixture
def view(tiny_checkpoint):
    return transformer.trace(tiny_checkpoint("gpt"), "The cat, the dog.").attention("decoder", 1, "self")


def test_rows_are_divided_by_what_remains_of_them(view) -> None:
    left_out = [2, 0]
    found = without_keys(view, left_out)
    kept = np.delete(np.arange(len(view.key)), left_out)
    expected = np.delete(view.weights, left_out, axis=2)
    expected[:, 1:] /= expected[:, 1:].sum(-1, keepdims=True)  # row 0 may attend to key 0 only: nothing remains
    np.testing.assert_allclose(found.weights, expected, rtol=1e-6)
    np.testing.assert_array_equal(found.allowed, view.allowed[:, kept])
    np.testing.assert_array_equal(found.scores, view.scores[:, :, kept])
    assert [token.display for token in found.key] == [view.key[key].display for key in kept]
    assert found.query == view.query and not found.weights[:, 0].any()
    np.testing.assert_allclose(share_left_out(view, [0, 2, 2]), view.weights[:, :, [0, 2]].sum(-1), rtol=1e-6)


def test_scores_of_the_kept_keys_give_the_divided_weights(view) -> None:
    """Leaving keys out is the softmax over the scores of the others."""
    found = without_keys(view, [0])
    powers = np.where(found.allowed, np.exp(found.scores), 0)[:, 1:]
    np.testing.assert_allclose(found.weights[:, 1:], powers / powers.sum(-1, keepdims=True), rtol=1e-4)


def test_sums_of_columns_and_means_of_rows(view) -> None:
    np.testing.assert_allclose(weight_received(view, [1, 3]), view.weights[:, :, 1] + view.weights[:, :, 3], rtol=1e-6)
    np.testing.assert_allclose(weight_given(view, [2, 4]), (view.weights[:, 2] + view.weights[:, 4]) / 2, rtol=1e-6)
    np.testing.assert_allclose(weight_given(view, [2, 4]).sum(-1), 1, rtol=1e-5)


def test_sinks_are_special_tokens_punctuation_and_the_first_token_of_causal_attention(view, tiny_checkpoint) -> None:
    assert sink_keys(view) == (0, *(np.flatnonzero(view.sinks[1:]) + 1)) and len(sink_keys(view)) > 1
    two_sided = transformer.trace(tiny_checkpoint("sentiment"), "cat, dog.").attention("encoder", 0, "self")
    assert sink_keys(two_sided) == tuple(np.flatnonzero(two_sided.sinks))


def test_a_key_that_does_not_exist_and_all_keys_are_refused(view) -> None:
    with pytest.raises(ValueError, match=f"no key 99; choose from 0 to {len(view.key) - 1}"):
        without_keys(view, [99])
    with pytest.raises(ValueError, match=f"fewer than all {len(view.key)}"):
        without_keys(view, range(len(view.key)))
