"""Arrays carry their labels, and wrong labels are refused."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from transformer import Activation, AttentionView, Token, TokenSequence, Trace

QUERY, KEY = 2, 3


def sequence(*displays: str, special: Sequence[int] = (), name: str = "source") -> TokenSequence:
    return TokenSequence(
        tuple(
            Token(index, 10 + index, display.replace("·", " "), display, index in special)
            for index, display in enumerate(displays)
        ),
        name,
    )


def view(**changes: object) -> AttentionView:
    weights = np.array([[[0.5, 0.5, 0.0], [0.25, 0.25, 0.5]]])
    values = {
        "name": "decoder.layers.0.cross_attention", "stack": "decoder", "layer": 0, "kind": "cross", "weights": weights,
        "allowed": np.array([[True, True, False], [True, True, True]]), "scores": np.zeros((1, QUERY, KEY)),
        "query": sequence("·a", "·b"), "key": sequence("·x", ".", "</s>", special=[2]),
    }  # fmt: skip
    return AttentionView(**{**values, **changes})


# ---- tokens ---------------------------------------------------------------------------------------------------------


def test_repeated_words_stay_apart() -> None:
    tokens = sequence("·the", "·cat", "·the", "·the")
    assert tokens.labels == ("·the", "·cat", "·the₂", "·the₃")
    assert tokens.displays == ("·the", "·cat", "·the", "·the")


def test_labels_stay_apart_even_where_the_text_looks_like_one() -> None:
    assert len(set(sequence("a", "a", "a₂", "a₂", "a").labels)) == 5
    assert sequence("a₂", "a", "a").labels[:2] == ("a₂", "a")
    assert len(set(sequence("a₂", "a", "a").labels)) == 3


@given(st.lists(st.sampled_from(["a", "a₂", "a₂₂", "a₃", "b", "b₁₂", ""]), max_size=30))
def test_labels_are_unique(displays: list[str]) -> None:
    labels = sequence(*displays).labels
    assert len(set(labels)) == len(labels) == len(displays)
    assert all(label.startswith(display) for label, display in zip(labels, displays, strict=True))


def test_a_sequence_is_a_sequence() -> None:
    tokens = sequence("·a", "b", "·c")
    assert len(tokens) == 3
    assert tokens[1].display == "b"
    assert [token.index for token in tokens] == [0, 1, 2]
    assert tokens.ids == (10, 11, 12)
    assert [token.starts_word for token in tokens] == [True, False, True]


def test_the_text_leaves_out_special_tokens_and_the_first_space() -> None:
    tokens = sequence("<s>", "·The", "·cat", "</s>", special=[0, 3])
    assert tokens.text == "The cat"


def test_tokens_must_be_numbered_in_order() -> None:
    with pytest.raises(ValueError, match=r"token 'b' carries index 5 but stands at position 1"):
        TokenSequence((Token(0, 4, "a", "a"), Token(5, 5, "b", "b")))


@pytest.mark.parametrize("instance", [Token(0, 1, "a", "a"), sequence("a"), view()])
def test_data_classes_cannot_be_changed(instance: object) -> None:
    field = dataclasses.fields(instance)[0].name
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(instance, field, None)


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
        ({"scores": np.zeros((2, QUERY, KEY))}, r"weights has 1 heads but scores has 2"),
        ({"allowed": np.ones((KEY, QUERY), dtype=bool)}, r"allowed has shape \(3, 2\)"),
        ({"kind": "crossed"}, r"kind 'crossed' is unknown; choose one of self, cross"),
        ({"query": sequence("a")}, r"1 query tokens"),
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
    keys = sequence("·s", "'", "assit", "·'", "Hi", "'", ".", "</s>", special=(7,))
    weights = np.full((1, 8, 8), 1 / 8)
    found = view(kind="self", weights=weights, scores=weights, allowed=weights[0] > 0, query=keys, key=keys)
    assert found.sinks.tolist() == [False, False, False, True, False, True, True, True]


def test_a_trace_lists_and_finds_its_activations() -> None:
    logits = Activation("decoder.logits", ("position", "vocabulary"), np.zeros((1, 2)))
    trace = Trace({"decoder.logits": logits}, None, sequence("<s>"), None, "text")
    assert trace.names() == ("decoder.logits",)
    assert trace["decoder.logits"] is logits
    assert trace.values("decoder.logits") is logits.values
    assert (trace.forced, trace.notes) == (False, ())
    assert trace.attention_kinds() == ()
