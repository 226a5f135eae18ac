"""Every parameter is counted once."""

from __future__ import annotations

import numpy as np
import pytest

from transformer.layers.costs import parameter_costs, parameter_statistics

KINDS = ("translator", "gpt", "bert", "sentiment")


@pytest.mark.parametrize("kind", KINDS)
def test_every_parameter_is_counted_once(tiny_checkpoint, kind):
    model = tiny_checkpoint(kind).model
    costs = parameter_costs(model)
    assert sum(cost.parameters for cost in costs) == model.n_parameters
    assert len({(cost.block, cost.part) for cost in costs}) == len(costs)


def test_parameters_of_known_parts(tiny_checkpoint):
    model = tiny_checkpoint("translator").model
    config = model.config
    found = {(cost.block, cost.part): cost.parameters for cost in parameter_costs(model)}
    d = config.d_model
    assert found["encoder layer 0", "self-attention"] == 4 * d * (d + 1)
    assert found["decoder layer 1", "cross-attention"] == 4 * d * (d + 1)
    assert found["encoder layer 1", "feed-forward"] == 2 * d * config.d_ff + d + config.d_ff
    assert found["decoder layer 0", "LayerNorm"] == 3 * 2 * d
    assert found["projection", "projection"] == d * config.vocabulary_size
    assert found["encoder embedding", "positions"] == 0  # sinusoidal: a formula


def test_a_tied_matrix_counts_where_it_is_first_used(tiny_checkpoint):
    found = {cost.block: cost.parameters for cost in parameter_costs(tiny_checkpoint("bert").model)}
    assert found["encoder embedding"] == 16 * (tiny_checkpoint("bert").config.vocabulary_size + 2), "E and two segments"
    assert found["next-sentence head"] == 16 * 16 + 16 + 16 * 2 + 2
    assert found["projection"] == 0


def test_statistics_are_those_of_the_weights_and_cover_all_of_them(tiny_checkpoint):
    model = tiny_checkpoint("bert").model  # tied: the embedding is also the projection
    rows = parameter_statistics(model)
    assert sum(row.numbers for row in rows) == model.n_parameters
    assert not any("vocabulary_projection" in row.name for row in rows)
    for row in rows:
        values = model.get_parameter(row.name).detach().numpy().astype(np.float64)
        assert row.shape == values.shape
        np.testing.assert_allclose(
            [row.mean, row.std, row.largest], [values.mean(), values.std(), np.abs(values).max()], atol=1e-6
        )
