"""The learning rate at steps computed by hand."""

from __future__ import annotations

from typing import Any

import pytest

from tests.transformer.tiny import config
from transformer.training.recipe import Recipe
from transformer.training.schedule import learning_rate


def recipe(**values: Any) -> Recipe:
    return Recipe(
        name="r", task="translation", corpus="tatoeba-en-fr", model=config(max_length=64), **{"steps": 100, **values}
    )


def test_cosine() -> None:
    settings = recipe(schedule="cosine", learning_rate=2e-3, warmup_steps=20)
    expected = {1: 1e-4, 10: 1e-3, 20: 2e-3, 40: 0.5 * 2e-3 * (1 + 0.5**0.5), 60: 1e-3, 100: 0.0}
    for step, rate in expected.items():
        assert learning_rate(settings, step) == pytest.approx(rate, abs=1e-12), step
    assert learning_rate(settings, 150) == pytest.approx(0.0, abs=1e-12)


def test_cosine_rises_then_falls() -> None:
    settings = recipe(schedule="cosine", warmup_steps=20)
    rates = [learning_rate(settings, step) for step in range(1, 101)]
    assert all(a < b for a, b in zip(rates[:20], rates[1:20], strict=False))
    assert all(a > b for a, b in zip(rates[19:], rates[20:], strict=False))


def test_a_run_that_ends_while_it_warms_up_never_divides_by_zero() -> None:
    settings = recipe(schedule="cosine", learning_rate=1.0, warmup_steps=100)
    assert learning_rate(settings, 50) == pytest.approx(0.5)
    assert learning_rate(settings, 100) == pytest.approx(1.0)
    assert learning_rate(recipe(schedule="cosine", learning_rate=1.0, warmup_steps=1, steps=1), 1) == 1.0


def test_a_restart_begins_a_second_cosine() -> None:
    settings = recipe(
        schedule="cosine", learning_rate=2e-3, warmup_steps=20, restart_at=60, restart_learning_rate=1e-3, steps=100
    )
    expected = {20: 2e-3, 40: 1e-3, 60: 0.0, 70: 0.5e-3 * (1 + 0.5**0.5), 80: 0.5e-3, 100: 0.0}
    for step, rate in expected.items():
        assert learning_rate(settings, step) == pytest.approx(rate, abs=1e-12), step


def test_the_papers_schedule() -> None:
    """§5.3 for a width of 16 and 20 warm-up steps: the peak is 16^−½ · 20^−½ = 0.0559."""
    settings = recipe(schedule="paper", learning_rate=1.0, warmup_steps=20)
    assert learning_rate(settings, 20) == pytest.approx(0.25 * 20**-0.5)
    assert learning_rate(settings, 1) == pytest.approx(0.25 * 20**-1.5)
    assert learning_rate(settings, 10) == pytest.approx(learning_rate(settings, 20) / 2)
    assert learning_rate(settings, 80) == pytest.approx(learning_rate(settings, 20) / 2)
    assert learning_rate(recipe(schedule="paper", learning_rate=3.0, warmup_steps=20), 80) == pytest.approx(
        3 * learning_rate(settings, 80)
    )
