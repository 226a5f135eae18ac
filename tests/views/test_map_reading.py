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


def test_a_map_never_loses_its_last_column(view) -> None:
    every = tuple(range(len(view.key)))
    found = MapReading(view, 0, ReadingChoices(left_out=every))
    assert found.left_out == () and found.view is found.merged
    assert found.sinks == tuple(np.flatnonzero(view.sinks))
