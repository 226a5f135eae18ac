"""Arrays carry their labels, and wrong labels are refused."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import transformer
from tests.transformer.heads.attention import tokens
from transformer import Activation, AttentionView, Token, TokenSequence

QUERY, KEY = 2, 3


def view(**changes: object) -> AttentionView:
    weights = np.array([[[0.5, 0.5, 0.0], [0.25, 0.25, 0.5]]])
    values = {
        "name": "decoder.layers.0.cross_attention", "stack": "decoder", "layer": 0, "kind": "cross", "weights": weights,
        "allowed": np.array([[True, True, False], [True, True, True]]), "scores": np.zeros((1, QUERY, KEY)),
        "query": tokens((" a", " b")), "key": tokens((" x", ".", "</s>")),
    }  # fmt: skip
    return AttentionView(**{**values, **changes})


# ---- tokens ---------------------------------------------------------------------------------------------------------


def test_repeated_words_stay_apart() -> None:
    found = tokens((" the", " cat", " the", " the"))
    assert found.labels == ("·the", "·cat", "·the₂", "·the₃")
    assert found.displays == ("·the", "·cat", "·the", "·the")


@given(st.lists(st.sampled_from(["a", "a₂", "a₂₂", "a₃", "b", "b₁₂", ""]), max_size=30))
def test_labels_are_unique(displays: list[str]) -> None:
    labels = tokens(displays).labels
    assert len(set(labels)) == len(labels) == len(displays)
    assert all(label.startswith(display) for label, display in zip(labels, displays, strict=True))


def test_the_text_leaves_out_special_tokens_and_the_first_space() -> None:
    assert tokens(("<s>", " The", " cat", "</s>")).text == "The cat"


def test_tokens_must_be_numbered_in_order() -> None:
    with pytest.raises(ValueError, match=r"token 'b' carries index 5 but stands at position 1"):
        TokenSequence((Token(0, 4, "a", "a"), Token(5, 5, "b", "b")))


# ---- arrays ---------------------------------------------------------------------------------------------------------


def test_an_activation_has_one_name_per_axis() -> None:
    activation = Activation("encoder.logits", ("position", "vocabulary"), np.arange(6.0).reshape(2, 3))
    assert activation.shape == (2, 3)
    assert np.asarray(activation).sum() == 15
    assert np.array(activation, dtype=np.float32).dtype == np.float32
    with pytest.raises(ValueError, match=r"'encoder.logits' declares 1 axes .* 2 dimensions \(2, 3\)"):
        Activation("encoder.logits", ("position",), np.zeros((2, 3)))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"weights": np.zeros((1, KEY, QUERY))}, r"weights has shape \(1, 3, 2\) but there are 2 query .* 3 key"),
        ({"weights": np.zeros((QUERY, KEY))}, r"weights has shape \(2, 3\)"),
        ({"scores": np.zeros((1, QUERY, KEY + 1))}, r"scores has shape \(1, 2, 4\)"),
        ({"scores": np.zeros((2, QUERY, KEY))}, r"scores has shape \(2, 2, 3\) .* must be \(1, 2, 3\)"),
        ({"allowed": np.ones((KEY, QUERY), dtype=bool)}, r"allowed has shape \(3, 2\)"),
        ({"kind": "crossed"}, r"kind 'crossed' is unknown; choose one of self, cross"),
        ({"query": tokens(("a",))}, r"1 query tokens"),
    ],
)
def test_an_attention_view_refuses_arrays_that_do_not_fit_its_tokens(changes: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        view(**changes)


def test_entropy_is_in_bits_and_0_where_one_key_gets_all() -> None:
    np.testing.assert_allclose(view().entropy, [[1.0, 1.5]])
    certain = view(weights=np.array([[[0.0, 1.0, 0.0], [0.0, 0.0, 0.0]]])).entropy
    assert certain.tolist() == [[0.0, 0.0]]
    assert not np.signbit(certain).any(), "−0 would be printed as -0.00"
    uniform = view(weights=np.full((1, QUERY, KEY), 1 / 3)).entropy
    np.testing.assert_allclose(uniform, np.log2(3))


def test_sinks_are_special_tokens_and_punctuation() -> None:
    assert view().sinks.tolist() == [False, True, True]
    np.testing.assert_allclose(view().sink_share, [[0.5, 0.75]])
    assert view().n_heads == 1


def test_an_apostrophe_inside_a_word_and_a_lone_byte_are_no_punctuation() -> None:
    keys = tokens((" s", "'", "assit", " '", "Hi", "'", ".", "</s>"))
    weights = np.full((1, 8, 8), 1 / 8)
    found = view(kind="self", weights=weights, scores=weights, allowed=weights[0] > 0, query=keys, key=keys)
    assert found.sinks.tolist() == [False, False, False, True, False, True, True, True]


@pytest.mark.parametrize("name", ["translator", "gpt", "bert"])
def test_the_strongest_pair_is_off_the_diagonal_and_of_words(tiny_checkpoint: Callable, name: str) -> None:
    trace = transformer.trace(tiny_checkpoint(name), "The old man told us a story.")
    for view in trace.attention_views():
        words = np.flatnonzero(~view.sinks)
        for head in range(view.n_heads):
            query, key = view.strongest_pair(head)
            rows = words if view.kind == "self" else range(len(view.query))
            pairs = [(i, j) for i in rows for j in words if view.allowed[i, j] and (view.kind == "cross" or i != j)]
            assert (query, key) in pairs
            assert view.weights[head, query, key] == max(view.weights[head][pair] for pair in pairs)


def test_a_single_word_has_no_pair(tiny_checkpoint: Callable) -> None:
    view = transformer.trace(tiny_checkpoint("sentiment"), "a").attention("encoder", 0, "self")
    assert view.strongest_pair(0) is None
