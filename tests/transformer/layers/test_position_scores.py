"""What positions do to scores: formulas against the tables they stand for, measurements against a known bias."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tests.transformer import tiny
from transformer.layers.position_scores import (
    alibi_bias,
    measured_position_scores,
    rotary_agreement,
    similarity_by_distance,
    sinusoidal_agreement,
)
from transformer.layers.positional import relative_bias, similarity, sinusoidal_table
from transformer.positions import RotaryEncoding

IDS = (5, 9, 4, 17)


class Loaded:
    """As much of a checkpoint as the measurement needs."""

    def __init__(self, model):
        self.model, self.config = model, model.config


def test_the_sinusoidal_formula_is_the_table_s_own_product():
    table = sinusoidal_table(20, 32).astype(np.float64)
    for m, n in ((0, 0), (7, 3), (3, 7), (19, 0)):
        assert table[m] @ table[n] / (table[0] @ table[0]) == pytest.approx(
            sinusoidal_agreement(32, 20)[abs(m - n)], abs=1e-5
        )


def test_the_rotary_formula_is_what_turning_leaves_of_equal_channels():
    config = tiny.config(positions="rotary")
    ones = torch.ones(1, 1, 12, config.d_head)
    turned = RotaryEncoding(config)(ones)[0, 0].double()
    wanted = (turned @ turned[0] / config.d_head).numpy()
    np.testing.assert_allclose(rotary_agreement(config, 12), wanted, atol=1e-6)


def test_alibi_s_slopes_halve_from_head_to_head():
    bias = alibi_bias(8, 5)
    np.testing.assert_allclose(bias[0], [0, -0.5, -1, -1.5, -2])
    np.testing.assert_allclose(bias[1:] * 2, bias[:-1])
    assert bias[7, 1] == -(2**-8)


def test_means_over_diagonals():
    matrix = np.array([[1.0, 2, 3], [4, 1, 6], [7, 8, 1]])
    assert list(similarity_by_distance(matrix)) == [1, 4, 3]
    table = similarity(sinusoidal_table(9, 16))
    np.testing.assert_allclose(similarity_by_distance(table), sinusoidal_agreement(16, 9), atol=1e-5)


@pytest.mark.parametrize("stack", ["encoder", "decoder"])
def test_of_a_relative_model_the_measurement_is_its_bias(stack):
    model = tiny.random_model(positions="relative")
    measured, distances = measured_position_scores(Loaded(model), IDS, stack=stack, n_positions=20)
    wanted, places = relative_bias(model, stack, 10)
    assert list(distances) == list(places)
    np.testing.assert_allclose(measured, wanted, atol=1e-5)


@pytest.mark.parametrize("kind", tiny.LAYERS)
@pytest.mark.parametrize("scheme", ["sinusoidal", "learned", "rotary", "none"])
def test_every_kind_of_model_can_be_measured(kind, scheme):
    model = tiny.random_model(kind, positions=scheme)
    stack = "decoder" if kind == "decoder-only" else "encoder"
    measured, distances = measured_position_scores(Loaded(model), IDS, stack=stack, n_positions=16)
    assert measured.shape == (2, len(distances)) == (2, 9 if stack == "decoder" else 17)
    assert (np.abs(measured).max() > 1e-3) == (scheme != "none")


def test_rotary_positions_change_nothing_at_distance_0():
    model = tiny.random_model("encoder-only", positions="rotary")
    measured, distances = measured_position_scores(Loaded(model), IDS, stack="encoder", n_positions=16)
    np.testing.assert_allclose(measured[:, distances == 0], 0, atol=1e-5)


def test_what_cannot_be_measured_is_refused():
    model = Loaded(tiny.random_model("decoder-only"))
    with pytest.raises(ValueError, match="no encoder"):
        measured_position_scores(model, IDS, stack="encoder", n_positions=8)
    with pytest.raises(ValueError, match="reads 2 to 24"):
        measured_position_scores(model, IDS, stack="decoder", n_positions=25)
