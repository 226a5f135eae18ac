"""Rollout, maps without some keys, maps of whole words, and blocks of long maps."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import pytest

import transformer
from tests.long_texts import long_sentence
from transformer.attention_maps.rollout import attention_rollout
from transformer.attention_maps.text_blocks import (
    block_of_interest,
    blocks_of,
    find_text,
    largest_weights,
    may_attend,
    shares_of_blocks,
    window_of,
)
from transformer.attention_maps.token_groups import (
    share_left_out,
    sink_keys,
    weight_given,
    weight_received,
    without_keys,
)
from transformer.attention_maps.whole_words import merge_into_words, spans
from transformer.interventions.experiment import same_tokens

SENTENCE = "The old man told us a story."
KINDS = ("translator", "gpt", "bert", "sentiment")


# ---- rollout ---------------------------------------------------------------------------------------------------------


STAYS = 0.3


def rollout_by_paths(trace: transformer.Trace, stack: str, wanted: str) -> np.ndarray:
    """Return the shares of the tokens that ``wanted`` reads, cell by cell (Abnar & Zuidema 2020, §3).

    A part of a position stays, the rest comes from what it attends to; a row that may attend to nothing keeps itself.
    """

    def mixed(kept: float, row: np.ndarray, others: list[float]) -> float:
        return kept if not row.any() else STAYS * kept + (1 - STAYS) * float(row @ others) / float(row.sum())

    @cache
    def share(stack: str, layer: int, query: int, token: int) -> float:
        if layer < 0:
            return float((stack, query) == (wanted, token))
        rows = trace.attention(stack, layer).weights.mean(axis=0, dtype=np.float64)
        found = mixed(share(stack, layer - 1, query, token), rows[query],
                      [share(stack, layer - 1, key, token) for key in range(len(rows))])  # fmt: skip
        if (stack, "cross") not in trace.attention_kinds():
            return found
        rows = trace.attention(stack, layer, "cross").weights.mean(axis=0, dtype=np.float64)
        return mixed(found, rows[query], [share("encoder", 1, key, token) for key in range(rows.shape[1])])

    sizes = len(trace.tokens(stack)), len(trace.tokens(wanted))
    return np.array([[share(stack, 1, query, token) for token in range(sizes[1])] for query in range(sizes[0])])


@pytest.mark.parametrize("kind", KINDS)
def test_rollout_is_a_sum_over_paths(tiny_checkpoint, kind):
    trace = transformer.trace(tiny_checkpoint(kind), "A cat, a dog.", source_pads=0 if kind == "gpt" else 1)
    edits = []
    for stack, attention in trace.attention_kinds():
        allowed = trace.attention(stack, 1, attention).allowed.copy()
        allowed[2] = False  # a row that may attend to nothing
        edits.append(transformer.override_mask(stack, layer=1, kind=attention, allowed=allowed))
    for shown in (trace, same_tokens(trace, edits)):
        for stack in shown.stacks:
            found = attention_rollout(shown, stack, residual=STAYS)
            for wanted, part in (("encoder", found.source), ("decoder", found.target)):
                if part is not None:
                    np.testing.assert_allclose(part.values, rollout_by_paths(shown, stack, wanted), atol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_rows_sum_to_one_and_masks_hold(tiny_checkpoint, kind):
    pads = 0 if kind == "gpt" else 2
    trace = transformer.trace(tiny_checkpoint(kind), SENTENCE, source_pads=pads)
    for stack, attention in trace.attention_kinds():
        found = attention_rollout(trace, stack)
        whole = sum(part.values.sum(axis=-1) for part in (found.source, found.target) if part is not None)
        assert whole == pytest.approx(np.ones(len(trace.tokens(stack))))
        view = found.view(attention)
        assert view.weights.shape == (1, len(view.query), len(view.key))
        assert view.weights.sum(axis=-1) == pytest.approx(1, abs=1e-6)
        assert (view.weights[0][~view.allowed] == 0).all() and (view.weights >= 0).all()
        if stack == "decoder" and attention == "self":
            assert np.array_equal(view.allowed, np.tril(np.ones_like(view.allowed)))
        elif pads:  # padding contributes only to the rows of padding
            assert not view.allowed[: len(view.query) - (0 if stack == "decoder" else pads), -pads:].any()
        assert view.query is trace.tokens(stack)


def test_what_is_not_there_is_refused(tiny_checkpoint):
    trace = transformer.trace(tiny_checkpoint("gpt"), SENTENCE)
    with pytest.raises(ValueError, match="no layer 7; the decoder has layers 0 to 1"):
        attention_rollout(trace, "decoder", layer=7)
    with pytest.raises(ValueError, match="residual is 2"):
        attention_rollout(trace, "decoder", residual=2)
    with pytest.raises(ValueError, match="no stack 'encoder'"):
        attention_rollout(trace, "encoder")
    with pytest.raises(ValueError, match="no map of kind 'cross'"):
        attention_rollout(trace, "decoder").view("cross")


# ---- without some keys -----------------------------------------------------------------------------------------------


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


# ---- whole words -----------------------------------------------------------------------------------------------------


def test_pieces_are_added_as_keys_and_averaged_as_queries(tiny_checkpoint) -> None:
    trace = transformer.trace(tiny_checkpoint("translator"), "The unbelievable cat, isn't it?", "Le chat dort.")
    for kind in ("self", "cross"):
        view = trace.attention("decoder", layer=1, kind=kind)
        found, rows, columns = merge_into_words(view), spans(view.query), spans(view.key)
        assert len(rows) == len(found.query) and len(columns) == len(found.key) < len(view.key)
        assert [i for begin, end in columns for i in range(begin, end)] == list(range(len(view.key)))
        for row, (begin, end) in enumerate(rows):
            for column, (first, last) in enumerate(columns):
                pairs = [(query, key) for query in range(begin, end) for key in range(first, last)]
                expected = sum(view.weights[:, query, key] for query, key in pairs) / (end - begin)
                np.testing.assert_allclose(found.weights[:, row, column], expected, atol=1e-6)
                assert found.allowed[row, column] == any(view.allowed[pair] for pair in pairs)
        np.testing.assert_allclose(found.weights.sum(-1), 1, atol=1e-5)
        assert "".join(found.key.displays) == "".join(view.key.displays)


# ---- blocks of a long map --------------------------------------------------------------------------------------------

SIZE, HEAD, ROW = 16, 1, 40


@pytest.fixture(scope="module")
def long(tiny_checkpoint: Callable) -> transformer.AttentionView:
    checkpoint = tiny_checkpoint("gpt")
    sentence = long_sentence(checkpoint, 90)
    return transformer.trace(checkpoint, sentence, strategy=transformer.Greedy(1)).attention("decoder", 1)


def test_a_window_is_a_part_of_the_map(long: transformer.AttentionView) -> None:
    blocks = blocks_of(len(long.key), SIZE)
    assert blocks[1] == range(16, 32) and blocks[-1][-1] == len(long.key) - 1, "the last block is shorter"
    window = window_of(long, blocks[2], blocks[1])
    np.testing.assert_array_equal(window.weights, long.weights[:, 32:48, 16:32])
    np.testing.assert_array_equal(window.allowed, long.allowed[32:48, 16:32])
    assert window.key.ids == long.key.ids[16:32] and [token.index for token in window.key] == list(range(16))


def test_the_overview_has_one_number_per_pair_of_blocks(long: transformer.AttentionView) -> None:
    weights, starts = long.weights[HEAD], range(0, len(long.key), SIZE)
    largest, allowed = largest_weights(long, HEAD, SIZE), may_attend(long, SIZE)
    assert largest.shape == allowed.shape == (len(starts),) * 2
    assert largest[2, 1] == weights[32:48, 16:32].max()
    assert allowed[2, 2] and not allowed[1, 2]
    shares = shares_of_blocks(long, HEAD, ROW, SIZE)
    np.testing.assert_allclose(shares, [weights[ROW, first : first + SIZE].sum() for first in starts], rtol=1e-5)
    apart = [weights[ROW, max(1, first) : first + SIZE].sum() for first in starts]
    assert block_of_interest(long, HEAD, ROW, SIZE) == np.argmax(apart), "the first token apart"


def test_a_text_is_found_wherever_it_begins(long: transformer.AttentionView) -> None:
    tokens = long.key
    (place,) = find_text(tokens, " OTHER shoe ")
    assert "".join(token.text for token in tokens.tokens[place:]).strip().startswith("other shoe")
    assert all("i" in tokens[token].text.casefold() for token in find_text(tokens, "i"))
    assert find_text(tokens, "zebra") == find_text(tokens, " ") == ()
