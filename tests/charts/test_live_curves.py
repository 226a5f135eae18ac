"""The curves of a live training: real numbers on axes that do not jump, and the gradient block by block."""

from __future__ import annotations

import numpy as np
import pytest

from charts.gradients import gradient_by_block
from charts.live_curves import live_curves


def test_both_panels_hold_the_numbers_and_mark_the_last() -> None:
    shares = {"right": [0.0, 0.5, 1.0], "on target": [0.1, 0.2, 0.9]}
    figure = live_curves([3.4, 0.5, 0.01], shares=shares, steps=[0, 20, 40], last_step=800)
    lines = [trace for trace in figure.data if trace.mode == "lines"]
    assert [trace.name for trace in lines] == ["loss", "right", "on target"]
    np.testing.assert_allclose(lines[0].y, [3.4, 0.5, 0.01])
    np.testing.assert_allclose(lines[2].y, [0.1, 0.2, 0.9])
    marks = [trace for trace in figure.data if trace.mode == "markers"]
    assert [trace.x[0] for trace in marks] == [40] * 3
    assert [trace.y[0] for trace in marks] == pytest.approx([0.01, 1.0, 0.9])
    assert figure.layout.yaxis.type == "log" and len(figure.layout.shapes) == 0


def test_the_axes_are_as_long_at_the_first_step_as_later() -> None:
    early, late = (live_curves([3.4] * n, shares={"right": [0.0] * n}, steps=range(n), last_step=100) for n in (1, 50))
    for axis in ("xaxis2", "yaxis", "yaxis2"):
        assert early.layout[axis].range == late.layout[axis].range
    assert early.layout.xaxis2.range[1] >= 100


def test_nothing_leaves_the_loss_axis() -> None:
    figure = live_curves([40.0, 1e-6], shares={}, steps=[0, 1], last_step=1)
    low, high = figure.layout.yaxis.range
    assert low <= -6 + 1e-6 and high >= np.log10(40) - 1e-6


def test_an_earlier_step_can_be_marked() -> None:
    figure = live_curves([3.0, 2.0, 1.0], shares={"right": [0, 0.1, 0.2]}, steps=[0, 20, 40], last_step=40, at=1)
    assert [shape.x0 for shape in figure.layout.shapes] == [20, 20]
    assert [trace.x[0] for trace in figure.data if trace.mode == "markers"] == [20, 20]
    with pytest.raises(ValueError, match="at is 3"):
        live_curves([1.0], shares={}, steps=[0], last_step=1, at=3)


def test_wrong_lengths_and_shares_are_refused() -> None:
    with pytest.raises(ValueError, match="loss"):
        live_curves([1.0, 2.0], shares={}, steps=[0], last_step=1)
    with pytest.raises(ValueError, match="right holds 2"):
        live_curves([1.0], shares={"right": [2.0]}, steps=[0], last_step=1)


def test_gradient_by_block_leaves_out_what_a_place_does_not_have() -> None:
    nan = float("nan")
    figure = gradient_by_block(
        {"outside": [0.5, nan, nan], "norms": [nan, 0.125, 0.25]}, places=["embedding", "encoder 0", "encoder 1"]
    )
    outside, norms = figure.data
    assert list(outside.x) == [0] and list(norms.x) == [1, 2]
    np.testing.assert_allclose(norms.y, [0.125, 0.25])
    assert list(norms.text) == ["0.125", "0.25"]
    assert list(figure.layout.xaxis.ticktext) == ["embedding", "encoder 0", "encoder 1"]
    with pytest.raises(ValueError, match="less than 0"):
        gradient_by_block({"norms": [-1.0]}, places=["encoder 0"])
