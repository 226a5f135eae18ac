"""The curves of a live training: real numbers, stable axes, and an unchanging specification."""

from __future__ import annotations

import json

import pytest

from charts.figures.live_curves import live_loss, live_shares

SHARES = {"right": [0.0, 0.5, 1.0], "on target": [0.1, 0.2, 0.9]}


def rows(chart) -> list[dict]:
    return chart.to_dict()["datasets"]["curves"]


def description(chart) -> str:
    """Return everything but the data: the specification from which the browser builds the chart."""
    spec = chart.to_dict()
    del spec["datasets"]
    return json.dumps(spec)


def domain(chart, axis: str) -> list[float]:
    return chart.to_dict()["layer"][0]["encoding"][axis]["scale"]["domain"]


def test_the_curves_hold_the_numbers_and_mark_the_last() -> None:
    loss = rows(live_loss([3.4, 0.5, 0.01], steps=[0, 20, 40], last_step=800))
    assert [row["step"] for row in loss] == [0, 20, 40]
    assert [row["value"] for row in loss] == pytest.approx([3.4, 0.5, 0.01])
    assert [row["marked"] for row in loss] == [False, False, True]
    shares = rows(live_shares(SHARES, steps=[0, 20, 40], last_step=800, at=1))
    assert [row["curve"] for row in shares] == ["right"] * 3 + ["on target"] * 3
    assert [row["value"] for row in shares] == pytest.approx([0, 0.5, 1, 0.1, 0.2, 0.9])
    assert [row["step"] for row in shares if row["marked"]] == [20, 20]


def test_more_data_change_nothing_else() -> None:
    """Otherwise the browser rebuilds the chart at every report, and it flickers."""
    for draw in (
        lambda n: live_loss([3.4] * n, steps=range(n), last_step=100),
        lambda n: live_shares({"right": [0.1 * n] * n}, steps=range(n), last_step=100, at=n - 1),
    ):
        assert description(draw(1)) == description(draw(9)) and rows(draw(1)) != rows(draw(9))


def test_nothing_leaves_the_axes() -> None:
    chart = live_loss([40.0, 2e-6], steps=[0, 1], last_step=7)
    low, high = domain(chart, "y")
    assert 1e-7 < low <= 2e-6 and high == 40 and domain(chart, "x") == [0, 7]
    assert domain(live_loss([1.0], steps=[0], last_step=7), "y") == [1e-3, 5]
    assert domain(live_shares(SHARES, steps=range(3), last_step=7), "y") == [0, 1]


def test_a_loss_of_nothing_can_be_drawn_on_a_logarithmic_axis() -> None:
    chart = live_loss([1.0, 0.0], steps=[0, 1], last_step=1)
    assert 0 < domain(chart, "y")[0] <= rows(chart)[1]["value"]


def test_what_cannot_be_drawn_is_refused() -> None:
    with pytest.raises(ValueError, match="loss has shape"):
        live_loss([1.0, 2.0], steps=[0], last_step=1)
    with pytest.raises(ValueError, match="right holds 2"):
        live_shares({"right": [2.0]}, steps=[0], last_step=1)
    with pytest.raises(ValueError, match="at is 3"):
        live_loss([1.0], steps=[0], last_step=1, at=3)
