"""Gates against the formulas of Louizos et al. 2018, and a model with closed gates against Surgery."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch

import transformer
from tests.transformer.tiny import SOURCE, TARGET, random_model, run
from tests.transformer.training.test_trainer import assert_same, everything, recipe, train
from tests.transformer.training.test_trainer import data as data  # a fixture
from transformer.probes import record
from transformer.training.head_gates import (
    BETA,
    GAMMA,
    ZETA,
    HeadGates,
    PrunedTranslation,
    attention_names,
    gate_edits,
    with_gates,
)
from transformer.training.publication import publish
from transformer.training.recipe import Pruning

PRUNING = Pruning(penalty=0.5, least_score=0.0, gate_rate=400.0)


def gates(log_alpha: float) -> HeadGates:
    made = HeadGates(3, 2)
    made.log_alpha.data.fill_(log_alpha)
    return made


@pytest.mark.parametrize("log_alpha", [-3.0, -0.5, 0.0, 2.0])
def test_the_probability_of_an_open_gate_and_its_mean_are_those_of_many_draws(log_alpha: float) -> None:
    torch.manual_seed(0)
    wide = HeadGates(200, 500)
    wide.log_alpha.data.fill_(log_alpha)
    drawn = wide.draw().detach()
    assert float((drawn != 0).float().mean()) == pytest.approx(
        float(wide.open_probabilities()[0, 0].detach()), abs=0.005
    )
    # The mean by the definition: s over all u, stretched and cut.
    total, steps = 0.0, 20_000
    for k in range(steps):
        u = (k + 0.5) / steps
        s = 1 / (1 + math.exp(-(math.log(u) - math.log(1 - u) + log_alpha) / BETA))
        total += min(1.0, max(0.0, s * (ZETA - GAMMA) + GAMMA))
    assert float(drawn.mean()) == pytest.approx(total / steps, abs=0.005)


@pytest.mark.parametrize("log_alpha", [-2.0, 0.3, 1.5])
def test_the_expected_number_of_open_gates_and_its_derivative(log_alpha: float) -> None:
    made = gates(log_alpha)
    expected = made.open_probabilities().sum()
    p = 1 / (1 + math.exp(-(log_alpha - BETA * math.log(-GAMMA / ZETA))))
    assert float(expected.detach()) == pytest.approx(6 * p)
    expected.backward()
    assert made.log_alpha.grad.flatten().tolist() == pytest.approx([p * (1 - p)] * 6)


def test_settled_gates_are_exactly_closed_or_open_at_the_ends_and_begin_open() -> None:
    assert gates(-2.5).settled().eq(0).all()
    assert gates(2.5).settled().eq(1).all()
    assert float(gates(0.0).settled()[0, 0]) == pytest.approx(0.5)
    assert HeadGates(1, 1).settled().item() == pytest.approx(1.0)


def test_a_gate_at_1_leaves_the_model_and_a_gate_at_0_is_a_head_removed_by_surgery() -> None:
    model = random_model()
    names = attention_names(model)
    assert len(names) == 6
    open_gates = torch.ones(6, 2)
    assert torch.equal(run(with_gates(model, open_gates)), run(model))
    open_gates[4, 1] = 0.0
    pruned = with_gates(model, open_gates)

    def zero(context: torch.Tensor) -> torch.Tensor:
        changed = context.clone()
        changed[:, 1] = 0.0
        return changed

    with record([transformer.Edit(f"{names[4]}.context", zero)]):
        by_surgery = run(model)
    torch.testing.assert_close(run(pruned), by_surgery)
    with record(gate_edits(names, open_gates)):
        assert torch.equal(run(model), by_surgery)
    assert not torch.equal(run(pruned), run(model))
    weight = pruned.get_submodule(names[4]).output_projection.weight
    assert weight[:, model.config.d_head :].eq(0).all() and weight[:, : model.config.d_head].ne(0).any()
    half = torch.full((6, 2), 0.5)
    folded = run(with_gates(model, half))
    with record(gate_edits(names, half)):
        torch.testing.assert_close(folded, run(model))


def test_the_loss_is_cross_entropy_and_the_price_of_open_gates() -> None:
    model = random_model()
    free, dear = (PrunedTranslation(model, penalty=p, least_score=0.0, gate_rate=1.0).eval() for p in (0.0, 0.15))
    batch = {"source": SOURCE, "target": torch.cat([TARGET, torch.tensor([[2]])], dim=1)}
    with torch.no_grad():
        bare, count = free(batch)
        priced, _ = dear(batch)
    p = 1 / (1 + math.exp(-(HeadGates.OPEN - BETA * math.log(-GAMMA / ZETA))))
    assert float(priced - bare) == pytest.approx(count * 0.15 * 12 * p, rel=1e-4)
    rows = torch.log_softmax(run(model, SOURCE, TARGET)[0], dim=-1)
    assert float(bare) == pytest.approx(-sum(float(r[t]) for r, t in zip(rows, [7, 19, 11, 2], strict=True)), rel=1e-4)


def test_fewer_heads_are_better_as_long_as_the_score_holds() -> None:
    objective = PrunedTranslation(random_model(), penalty=0.3, least_score=50.0, gate_rate=1.0)
    whole = objective.merit(51.0), objective.merit(52.0), objective.merit(49.0)
    objective.gates.log_alpha.data[0, 0] = -9.0
    pruned = objective.merit(50.1), objective.merit(49.9)
    assert pruned[1] < whole[0] < whole[1] < pruned[0]
    assert whole[2] < pruned[1] < 0


@pytest.mark.slow
def test_a_run_closes_heads_goes_on_exactly_where_it_was_stopped_and_saves_an_ordinary_model(
    data: Path, tmp_path: Path
) -> None:
    train(data, tmp_path / "start", recipe(steps=2, evaluate_every=2))
    start = tmp_path / "start" / "best"
    settings = recipe(start_from=str(start), pruning=PRUNING, snapshots=())
    whole = train(data, tmp_path / "whole", settings)
    for stop in (1, 6, 9):
        train(data, tmp_path / "stopped", settings, stop_after=stop)
    resumed = train(data, tmp_path / "stopped", settings)
    assert_same(everything(resumed), everything(whole))
    settled = whole._own_objective.gates.settled()
    assert torch.equal(resumed._own_objective.gates.settled(), settled)
    assert 0 < (settled == 0).sum() <= settled.numel()
    best = transformer.load(tmp_path / "whole" / "best").model
    off = [(a, h) for a in range(3) for h in range(2) if settled[a, h] == 0]
    for attention, head in off:
        projection = best.get_submodule(attention_names(best)[attention]).output_projection.weight
        assert projection[:, head * best.config.d_head : (head + 1) * best.config.d_head].eq(0).all()
    assert whole.best_score in [row.get("dev_score") for row in whole.history]

    card = publish(whole, tmp_path / "out") and (tmp_path / "out" / "README.md").read_text()
    assert "| began as | the checkpoint `best` |" in card
    assert "| chosen by training | which heads are off" in card and "0.5 nats a token" in card
    whole.recipe = replace(settings, pruning=replace(PRUNING, least_score=101.0))
    assert "less than the least_score of 101" in publish(whole, tmp_path / "refused")
    assert not (tmp_path / "refused").exists()
