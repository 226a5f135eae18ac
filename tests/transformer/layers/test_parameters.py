"""Every trained number is counted once."""

from __future__ import annotations

import numpy as np

from transformer.layers.parameters import parameter_statistics


def test_statistics_are_those_of_the_weights_and_cover_all_of_them(tiny_checkpoint):
    model = tiny_checkpoint("bert").model  # tied: the embedding is the projection, too
    rows = parameter_statistics(model)
    assert sum(row.numbers for row in rows) == model.n_parameters
    assert not any("vocabulary_projection" in row.name for row in rows)
    for row in rows:
        values = model.get_parameter(row.name).detach().numpy().astype(np.float64)
        assert row.shape == values.shape
        np.testing.assert_allclose(
            [row.mean, row.std, row.largest], [values.mean(), values.std(), np.abs(values).max()], atol=1e-6
        )
