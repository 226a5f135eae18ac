from __future__ import annotations

import numpy as np
import pytest

from transformer.layers.projection import principal_components


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
