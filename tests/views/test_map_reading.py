"""A map read another way: what the section below the map draws, against plain numpy."""

from __future__ import annotations

import numpy as np
import pytest

import transformer
from transformer.attention_maps.whole_words import merge_into_words
from views.attention.map_reading import MapReading, ReadingChoices

SENTENCE = "The unbelievable cat, isn't it?"


@pytest.fixture
def view(tiny_checkpoint):
    return transformer.trace(tiny_checkpoint("translator"), SENTENCE, "Le chat dort.").attention("encoder", 1, "self")


def test_leaving_out_a_piece_leaves_out_its_word_and_keeps_the_names_of_the_others(view) -> None:
    merged = merge_into_words(view)
    first = MapReading(view, 1, ReadingChoices())
    word = next(index for index, (begin, end) in enumerate(first.key_spans) if end - begin > 1)
    piece = first.key_spans[word][0] + 1
    found = MapReading(view, 1, ReadingChoices(left_out=(piece,)))
    expected = np.delete(merged.weights, word, axis=2)
    np.testing.assert_allclose(found.view.weights, expected / expected.sum(-1, keepdims=True), rtol=1e-5)
    assert found.left_out_labels == (merged.key.labels[word],)
    assert found.key_labels == tuple(np.delete(merged.key.labels, word))
    np.testing.assert_allclose(found.share_left_out, merged.weights[1, :, word], rtol=1e-6)
    pieces = MapReading(view, 1, ReadingChoices(whole_words=False, left_out=(piece,)))
    assert pieces.left_out_labels == (view.key.labels[piece],) and pieces.view.query is view.query


def test_tokens_together_are_sums_of_columns_and_means_of_rows_of_what_is_drawn(view) -> None:
    chosen = ReadingChoices(whole_words=False, left_out=(0,), together=(0, 2, 3))
    found = MapReading(view, 0, chosen)  # key 0 is left out, so it receives nothing
    rest = view.weights[:, :, 1:] / view.weights[:, :, 1:].sum(-1, keepdims=True)
    np.testing.assert_allclose(found.sums, rest[:, :, 1] + rest[:, :, 2], rtol=1e-5)
    assert found.together_labels == (view.key.labels[2], view.key.labels[3])
    mean, even = found.mean_received
    assert mean == pytest.approx(found.sums[0].mean()) and even == pytest.approx(2 / (len(view.key) - 1))
    given = MapReading(view, 0, ReadingChoices(whole_words=False, together=(0, 2), direction="given"))
    np.testing.assert_allclose(given.sums, (view.weights[:, 0] + view.weights[:, 2]) / 2, rtol=1e-6)
    assert given.most_given[0] == (given.sums[0].argmax(), pytest.approx(given.sums[0].max()))


def test_rows_that_the_mask_keeps_from_all_of_them_do_not_count(tiny_checkpoint) -> None:
    view = transformer.trace(tiny_checkpoint("gpt"), "My dog is big.").attention("decoder", 1, "self")
    found = MapReading(view, 1, ReadingChoices(whole_words=False, together=(3, 4)))
    assert list(np.flatnonzero(found.can_be)) == list(range(3, len(view.query)))
    mean, even = found.mean_received
    assert mean == pytest.approx(view.weights[1, 3:, 3:5].sum(-1).mean())
    assert even == pytest.approx(np.mean([min(row - 2, 2) / (row + 1) for row in range(3, len(view.query))]))


def test_a_map_never_loses_its_last_column(view) -> None:
    every = tuple(range(len(view.key)))
    found = MapReading(view, 0, ReadingChoices(left_out=every))
    assert found.left_out == () and found.view is found.merged
    assert found.sinks == tuple(np.flatnonzero(view.sinks))
