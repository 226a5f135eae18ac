"""Tokens combined into words: sums over keys, means over queries, rows that still sum to 1."""

from __future__ import annotations

import numpy as np

import transformer
from transformer.attention_maps.whole_words import merge_into_words, spans


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
