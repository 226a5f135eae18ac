"""Rows of E: looked up, neighbours, analogies, principal components."""

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
    principal_components,
    single_token_analogies,
    word_analogy,
)

TABLE = np.array([[1, 0], [2, 0.1], [0, 3], [-1, 0], [0, 0]], dtype=np.float32)


def test_nearest_rows_by_direction_not_by_length():
    found = nearest_rows(TABLE, TABLE[0], count=5)
    assert [neighbour.id for neighbour in found] == [0, 1, 2, 4, 3]
    cosines = [1, 2 / np.hypot(2, 0.1), 0, 0, -1]  # a row of zeros has the cosine 0
    assert [neighbour.similarity for neighbour in found] == pytest.approx(cosines)
    assert nearest_rows(TABLE, TABLE[0], count=3, excluded={0}) == found[1:4]
    with pytest.raises(ValueError, match=r"\(3,\).*\(2,\)"):
        nearest_rows(TABLE, np.ones(3, dtype=np.float32))


def test_analogy_finds_the_fourth_corner_and_leaves_its_own_words_out():
    # king, man, woman, queen as corners of a square on the unit sphere, and a word between them
    angle = np.deg2rad([10, 40, 70, 40])
    table = np.stack([np.cos(angle), np.sin(angle), np.array([0.5, 0.5, 0.5, 0.4])], axis=1).astype(np.float32)
    queen = table[0] / np.linalg.norm(table[0]) - table[1] / np.linalg.norm(table[1])
    queen = queen + table[2] / np.linalg.norm(table[2])
    table = np.vstack([table, 3 * queen])
    found = analogy(table, 0, 1, 2, count=2)
    assert found[0].id == 4 and found[0].similarity == pytest.approx(1)
    assert {0, 1, 2}.isdisjoint(neighbour.id for neighbour in analogy(table, 0, 1, 2))


def test_principal_components_are_those_of_a_singular_value_decomposition():
    table = (np.random.default_rng(3).normal(size=(60, 5)) * [0.1, 4, 1, 0.2, 2] + 7).astype(np.float32)
    projection = principal_components(table, count=5)
    left, lengths, _ = np.linalg.svd(table.astype(np.float64) - table.mean(axis=0, dtype=np.float64), full_matrices=0)
    np.testing.assert_allclose(np.abs(projection.coordinates), np.abs(left * lengths), atol=1e-4)
    np.testing.assert_allclose(projection.explained, lengths**2 / (lengths**2).sum(), rtol=1e-6)
    mirrored = principal_components(table[::-1].copy(), count=5)
    np.testing.assert_allclose(mirrored.coordinates[::-1], projection.coordinates, atol=1e-4)  # a fixed sign
    alike = principal_components(np.ones((4, 3), dtype=np.float32))
    assert alike.explained == (0.0, 0.0) and not alike.coordinates.any()
    with pytest.raises(ValueError, match="count is 4"):
        principal_components(np.ones((4, 3), dtype=np.float32), count=4)


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
