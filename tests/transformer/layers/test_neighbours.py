from __future__ import annotations

import numpy as np
import pytest

from transformer.layers.neighbours import analogy, nearest_rows

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
