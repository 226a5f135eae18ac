""""""

from __future__ import annotations

import numpy as np
import pytest

from transformer.layers.embedding_space import analogy, nearest_rows, principal_components

TABLE = np.array([[1, 0], [2, 0.1], [0, 3], [-1, 0], [0, 0]], dtype=np.float32)


def test_nearest_rows_by_direction_not_by_length():
    found = nearest_rows(TABLE, TABLE[0], count=3, excluded={0})
    assert [neighbour.id for neighbour in found] == [1, 2, 4]
    assert found[0].similarity == pytest.approx(2 / np.hypot(2, 0.1))
    assert found[1].similarity == 0


def test_opposite_rows_have_cosine_minus_one_and_a_row_of_zeros_has_0():
    by_id = {neighbour.id: neighbour.similarity for neighbour in nearest_rows(TABLE, TABLE[0], count=5)}
    assert by_id[0] == pytest.approx(1) and by_id[3] == pytest.approx(-1) and by_id[4] == 0


def test_a_vector_of_another_width_is_refused():
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


def _cloud(seed: int = 3) -> np.ndarray:
    generator = np.random.default_rng(seed)
    return (generator.normal(size=(60, 5)) * [0.1, 4, 1, 0.2, 2] + 7).astype(np.float32)


def test_the_same_as_a_singular_value_decomposition():
    table = _cloud()
    projection = principal_components(table, count=3)
    centred = table.astype(np.float64) - table.mean(axis=0, dtype=np.float64)
    left, lengths, _ = np.linalg.svd(centred, full_matrices=False)
    np.testing.assert_allclose(np.abs(projection.coordinates), np.abs(left * lengths)[:, :3], atol=1e-4)
    np.testing.assert_allclose(projection.explained, (lengths**2 / (lengths**2).sum())[:3], rtol=1e-6)


def test_all_components_explain_everything_and_the_picture_has_a_fixed_sign():
    table = _cloud()
    assert sum(principal_components(table, count=5).explained) == pytest.approx(1)
    mirrored = principal_components(table[::-1].copy())
    np.testing.assert_allclose(mirrored.coordinates[::-1], principal_components(table).coordinates, atol=1e-4)


def test_identical_rows_are_no_division_by_zero():
    projection = principal_components(np.ones((4, 3), dtype=np.float32))
    assert projection.explained == (0.0, 0.0) and not projection.coordinates.any()


def test_more_components_than_columns_are_refused():
    with pytest.raises(ValueError, match="count is 4"):
        principal_components(np.ones((4, 3), dtype=np.float32), count=4)
