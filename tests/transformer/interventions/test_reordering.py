"""Tokens at other positions: which may move, the words that are swapped, and what the run then says."""

from __future__ import annotations

import numpy as np
import pytest

import transformer
from tests.shipped import shipped
from transformer.interventions import reordering
from transformer.layers.positional_encodings import reordered_positions, without_positions

SENTENCE = "The old man told us a story."


@pytest.mark.parametrize("change", ["swap", "shuffle", "reverse", "remove", "remove_all"])
def test_a_new_order_moves_no_special_token(tiny_checkpoint, change):
    trace = transformer.trace(tiny_checkpoint("tiny-translator"), SENTENCE)
    tokens, places, pair = reordering.input_tokens(trace), reordering.movable(trace), reordering.distant_words(trace)
    order = reordering.new_order(trace, change, pair=pair, shuffle=3)
    everywhere = change == "remove_all"
    edits = reordering.position_edits(trace, order, everywhere=everywhere)
    assert {edit.name.split(".")[0] for edit in edits} == ({"encoder", "decoder"} if everywhere else {"encoder"})
    if change.startswith("remove"):
        assert order is None
        return
    assert sorted(order) == list(range(len(tokens)))
    assert all(order[token.index] == token.index for token in tokens if token.special)
    moved = [index for index in range(len(tokens)) if order[index] != index]
    assert change != "swap" or moved == sorted(pair)
    assert change != "reverse" or [order[index] for index in places] == places[::-1]


def test_the_words_that_are_swapped_are_beyond_the_prefix_of_a_task(tiny_checkpoint):
    trace = transformer.trace(tiny_checkpoint("tiny-translator"), SENTENCE)
    tokens, (first, second) = reordering.input_tokens(trace), reordering.distant_words(trace)
    assert tokens[first].text.strip().isalnum() and first < second
    later, _ = reordering.distant_words(trace, "The old man")
    assert sum(len(token.text) for token in tokens[:later] if not token.special) >= len("The old man")


@pytest.mark.parametrize(
    ("sentence", "words"),
    [
        ("Tom loves Mary.", ("Tom", "Mary")),
        ("My grandmother bakes apple pie every Sunday.", ("apple", "Sunday")),  # "bakes" is in parts
        ("I know that you know that I know.", ("know", "I")),  # not "know" with itself
        ("No no no", ("No", "no")),
        ("so so so so", ("so", "so")),
    ],
)
def test_two_distant_whole_words_are_swapped(sentence, words):
    trace = transformer.trace(shipped("en-fr"), sentence)
    tokens, (first, second) = reordering.input_tokens(trace), reordering.distant_words(trace)
    assert first < second and (tokens[first].text.strip(), tokens[second].text.strip()) == words


@pytest.mark.parametrize("name", ["tiny-translator", "tiny-gpt"])
def test_the_change_of_attention_is_the_traces(tiny_checkpoint, name):
    before = transformer.trace(tiny_checkpoint(name), SENTENCE)
    model, stack = before.checkpoint.model, before.stacks[0]
    after = reordering.reordered_trace(before, None)
    alone = transformer.trace(before.checkpoint, SENTENCE, edits=without_positions(model, stack))
    assert after.text == alone.text
    found = reordering.attention_change(before, after, 3)
    weights = [one.attention(stack, 0, "self").weights[:, 3] for one in (before, alone)]
    assert found.head == np.abs(weights[0] - weights[1]).sum(axis=1).argmax()
    n_keys = 4 if name == "tiny-gpt" else len(reordering.input_tokens(before))
    np.testing.assert_array_equal(found.after, weights[1][found.head][:n_keys])
    assert found.before.sum() == pytest.approx(1, abs=1e-5)


def test_swapped_words_change_the_output():
    checkpoint = shipped("en-fr-2017")
    trace = transformer.trace(checkpoint, "Tom loves Mary.")
    order = reordering.new_order(trace, "swap", pair=reordering.distant_words(trace))
    swapped = transformer.trace(
        checkpoint, "Tom loves Mary.", edits=reordered_positions(checkpoint.model, "encoder", order)
    )
    assert reordering.reordered_trace(trace, order).text == swapped.text == "Mary aime Tom."
    assert reordering.text_probabilities(trace, order) is None, "a translation is generated, not typed"
