"""Every parameter is counted once."""

from __future__ import annotations

import numpy as np
import pytest

import transformer
from transformer.layers.costs import REST, measured_costs, parameter_costs, parameter_statistics

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


@pytest.mark.parametrize("kind", KINDS)
def test_measured_times_are_there_for_every_part_and_leave_the_model_alone(tiny_checkpoint, kind):
    checkpoint = tiny_checkpoint(kind)
    trace = transformer.trace(checkpoint, "The dog sleeps.")
    hooks = [len(module._forward_hooks) for module in checkpoint.model.modules()]
    costs = measured_costs(trace, repeats=2)
    assert [len(module._forward_hooks) for module in checkpoint.model.modules()] == hooks
    assert all(cost.milliseconds > 0 for cost in costs)
    assert sum(cost.parameters for cost in costs) == checkpoint.model.n_parameters
    assert {cost.part for cost in costs} >= {"self-attention", "feed-forward", REST}


def test_time_of_an_inner_part_is_not_counted_with_the_outer_one(tiny_checkpoint, monkeypatch):
    """With a clock that ticks at each reading, own times add up to the total: nothing counts twice."""
    from transformer.layers import costs

    readings = iter(range(1_000_000))
    monkeypatch.setattr(costs.time, "perf_counter", lambda: float(next(readings)))
    checkpoint = tiny_checkpoint("translator")
    trace = transformer.trace(checkpoint, "The dog sleeps.")
    start = next(readings)
    measured = measured_costs(trace, repeats=1)
    whole = next(readings) - start
    # two passes (one warm-up); between the passes the clock is not read, and each pass loses its first reading
    assert sum(cost.milliseconds for cost in measured) == pytest.approx(1000 * (whole / 2 - 1), rel=0.02)


def test_no_passes_are_refused(tiny_checkpoint):
    checkpoint = tiny_checkpoint("bert")
    with pytest.raises(ValueError, match="repeats is 0"):
        measured_costs(transformer.trace(checkpoint, "The dog."), repeats=0)


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
