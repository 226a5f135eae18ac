"""Rows of E: looked up, multiplied out, recorded; neighbours, analogies, the rows around them."""

from __future__ import annotations

import numpy as np
import pytest

import transformer
from transformer.layers import embedding_space
from transformer.layers.embedding_lookup import embedding_table, lookup, rows_around
from transformer.layers.embedding_space import (
    analogy,
    nearest_rows,
    nearest_tokens,
    single_token_analogies,
    word_analogy,
)

SENTENCE = "The dog sleeps under the table."


@pytest.mark.parametrize("name", ["tiny-translator", "tiny-gpt", "tiny-bert", "tiny-sentiment"])
def test_the_row_is_looked_up_multiplied_out_and_recorded(tiny_checkpoint, name):
    trace = transformer.trace(tiny_checkpoint(name), SENTENCE)
    stack = trace.stacks[0]
    found = lookup(trace, stack, 2)
    table = getattr(trace.checkpoint.model, stack).embedding.table.weight.detach().numpy()
    assert found.id == trace.tokens(stack)[2].id
    np.testing.assert_array_equal(embedding_table(trace.checkpoint, stack), table)
    np.testing.assert_array_equal(found.row, table[found.id])
    np.testing.assert_array_equal(found.product, table[found.id])
    assert found.difference == 0
    np.testing.assert_allclose(found.recorded, table[found.id] * found.scale, rtol=1e-6)
    near = nearest_tokens(trace.checkpoint, stack, found.id)
    assert near == nearest_rows(table, table[found.id], count=12, excluded={found.id})
    assert found.id not in {neighbour.id for neighbour in near}
    assert (found.segment, found.segment_length > 0) == (("A", True) if name == "tiny-bert" else ("", False))


def test_the_rows_around_are_two_on_each_side_within_the_table():
    assert rows_around([5, 0, 6], vocabulary=8) == [0, 1, 2, 3, 4, 5, 6, 7]
    assert rows_around([9], vocabulary=20, around=1) == [8, 9, 10]


def test_only_words_of_one_token_are_offered_as_analogies(tiny_checkpoint, monkeypatch):
    checkpoint = tiny_checkpoint("tiny-translator")
    words = ("the", "a", "is", "on", "in", "we", "I", "The", "le", "la")
    single = [word for word in words if len(checkpoint.tokenizer.encode(word)) == 1]
    monkeypatch.setattr(embedding_space, "ANALOGIES", (tuple(single[:4]), ("unbelievably", *single[:3])))
    assert single_token_analogies(checkpoint.tokenizer) == (tuple(single[:4]),)
    found = word_analogy(checkpoint, "encoder", single[:3], single[3])
    ids = [checkpoint.tokenizer.encode(word)[0] for word in single[:4]]
    table = embedding_table(checkpoint, "encoder")
    every = analogy(table, *ids[:3], count=len(table))
    assert (found.nearest, found.n_rows) == (every[:12], len(every))
    assert every[found.rank - 1].id == ids[3]
    assert word_analogy(checkpoint, "encoder", single[:3]).rank == 0
