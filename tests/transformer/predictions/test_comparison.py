"""Known alignments, differences that must be zero or reverse, and divergences computed by hand."""

from __future__ import annotations

import numpy as np
import pytest

import transformer
from tests.transformer.heads.attention import made, tokens
from transformer.predictions.comparison import (
    align,
    compared_attention,
    difference_map,
    head_differences,
    head_divergence,
    stream_similarity,
)
from transformer.runs.attention_view import AttentionView
from transformer.text.tokens import TokenSequence

KINDS = ("translator", "gpt", "bert", "sentiment")
SENTENCE, OTHER = "The old man told us a story.", "The man told us an old story."


def sequence(words: str) -> TokenSequence:
    return tokens([f" {word}" for word in words.split()])


def view(weights: list, *, query: str, key: str) -> AttentionView:
    """Return hand-made heads, [head, query, key]; everything is allowed."""
    return made(np.array(weights), *([f" {word}" for word in words.split()] for words in (query, key)), kind="self")


def test_a_known_alignment() -> None:
    found = align(sequence("I like this book"), sequence("I do not like that book"))
    assert found.pairs == ((0, 0), (1, 3), (2, 4), (3, 5))
    assert found.equal == (True, True, False, True)
    assert found.merged == ((0, 0), (None, 1), (None, 2), (1, 3), (2, 4), (3, 5))
    assert found.labels == ("·I", "·do (B)", "·not (B)", "·like", "·this / ·that", "·book")


def test_what_was_replaced_by_more_has_no_partner() -> None:
    found = align(sequence("too tired"), sequence("too w ide"))
    assert found.pairs == ((0, 0),)
    assert found.labels == ("·too", "·tired (A)", "·w (B)", "·ide (B)")
    nothing = align(sequence("a"), sequence("b c"))
    assert nothing.pairs == () and nothing.merged == ((0, None), (None, 0), (None, 1))


def test_neither_case_nor_the_first_space_keeps_words_of_two_tokenizers_apart() -> None:
    found = align(tokens(("The", " cat", " Sat")), tokens((" so", " the", "cat", " sat")))
    assert found.pairs == ((0, 1), (1, 2), (2, 3))
    assert found.equal == (False, True, False)


@pytest.mark.parametrize(
    ("one", "two"), [("a b a b c", "b a b a c"), ("a b c d", "b a d c"), ("x a b", "a b x a"), ("a", "a a a")]
)
def test_turning_the_sentences_round_turns_the_pairs_round(one: str, two: str) -> None:
    there, back = align(sequence(one), sequence(two)), align(sequence(two), sequence(one))
    assert there.pairs == tuple((i, j) for j, i in back.pairs)
    assert there.equal == back.equal and there.pairs


@pytest.mark.parametrize("kind", KINDS)
def test_a_run_compared_with_itself_differs_nowhere(tiny_checkpoint, kind) -> None:
    trace = transformer.trace(tiny_checkpoint(kind), SENTENCE)
    for stack, attention in trace.attention_kinds():
        one = trace.attention(stack, 1, attention)
        found = difference_map(one, one, head=1)
        assert not found.values.any() and found.mean_change == 0 and found.n_unaligned == 0
        assert np.array_equal(found.known, one.allowed)
        np.testing.assert_allclose(head_differences(trace, trace, stack, attention), 0, atol=1e-12)
        layers = (trace.attention(stack, layer, attention) for layer in (0, 1))
        far = np.stack([head_divergence(one, layer, head=1) for layer in layers])
        assert far.shape == (2, 2) and np.unravel_index(far.argmin(), far.shape) == (1, 1)
    stack = trace.stacks[-1]
    np.testing.assert_allclose(stream_similarity(trace, trace, stack).cosine, 1, atol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_swapped_sentences_give_the_negated_map(tiny_checkpoint, kind) -> None:
    checkpoint = tiny_checkpoint(kind)
    one, two = transformer.trace(checkpoint, SENTENCE), transformer.trace(checkpoint, OTHER)
    for stack, attention in one.attention_kinds():
        views = [trace.attention(stack, 0, attention) for trace in (one, two)]
        there, back = difference_map(*views, head=0), difference_map(*views[::-1], head=0)
        assert there.known.any() and np.abs(there.values).max() > 1e-3
        np.testing.assert_array_equal(there.values[there.known], -back.values[back.known])
        assert there.n_unaligned == back.n_unaligned and there.mean_change == back.mean_change
        np.testing.assert_allclose(
            head_differences(one, two, stack, attention), head_differences(two, one, stack, attention), atol=1e-12
        )
    stack = one.stacks[-1]
    there, back = stream_similarity(one, two, stack), stream_similarity(two, one, stack)
    np.testing.assert_allclose(there.cosine, back.cosine, atol=1e-12)


def test_a_difference_is_second_minus_first_where_both_have_the_cell() -> None:
    first = view([[[0.5, 0.5, 0.0], [0.2, 0.3, 0.5], [0.0, 0.0, 1.0]]], query="a b c", key="a b c")
    second = view([[[0.1, 0.9], [1.0, 0.0]]], query="a c", key="a c")
    found = difference_map(first, second, head=0)
    assert found.query.labels == ("·a", "·b (A)", "·c")
    assert found.known.tolist() == [[True, False, True], [False, False, False], [True, False, True]]
    np.testing.assert_allclose(found.values, [[-0.4, 0, 0.9], [0, 0, 0], [1.0, 0, -1.0]], atol=1e-6)
    assert found.mean_change == pytest.approx((0.4 + 0.9 + 1 + 1) / 4)
    assert found.n_unaligned == 2
    with pytest.raises(ValueError, match="there is no head 3; choose 0 to 0"):
        difference_map(first, second, head=0, second_head=3)


def test_what_goes_to_keys_without_a_partner_counts_as_one_more_key() -> None:
    first = view([[[0.25, 0.75]]], query="a", key="a b")
    second = view([[[0.25, 0.5, 0.25]]], query="a", key="a x y")
    assert head_divergence(first, second).tolist() == pytest.approx([0.0], abs=1e-12)
    other_query = view([[[0.5, 0.5], [1.0, 0.0]]], query="x y", key="a b")
    other_key = view([[[0.5, 0.2, 0.3]]], query="a", key="x y z")
    assert np.isnan(head_divergence(first, other_query)).all() and np.isnan(head_divergence(first, other_key)).all()


def test_rows_of_cross_attention_correspond_where_they_predict_the_same_token(tiny_checkpoint) -> None:
    checkpoint = tiny_checkpoint("translator")
    one, two = (transformer.trace(checkpoint, SENTENCE, target=target) for target in ("He was old.", "She was old."))
    first, second = (compared_attention(trace, "decoder", 1, "cross") for trace in (one, two))
    assert first.query.displays == one.prediction.displays == (*one.target.displays[1:], "</s>")
    np.testing.assert_array_equal(first.weights, one.attention("decoder", 1, "cross").weights)
    assert difference_map(first, second, head=0).query == align(one.prediction, two.prediction)
    assert compared_attention(one, "decoder", 1).query == one.target, "what looks back is named after what it reads"


def test_streams_of_different_models_are_not_compared(tiny_checkpoint) -> None:
    bert, other = (transformer.trace(tiny_checkpoint(kind), SENTENCE) for kind in ("bert", "translator"))
    with pytest.raises(ValueError, match="2 and 2 layers of 16 and 32 numbers; only two runs of one checkpoint"):
        stream_similarity(bert, other, "encoder")
