"""The feed-forward layer's figures."""

from __future__ import annotations

from math import erf, sqrt

import numpy as np
import pytest

from charts.figures.activation_curve import activation_curve
from charts.figures.units import hidden_heatmap, silent_units, strongest_bars, unit_writes
from charts.toolkit import style


def test_signed_values_diverge_and_relu_outputs_do_not(tokens, numbers):
    values = numbers.normal(size=(7, 9)).astype(np.float32)
    signed = hidden_heatmap(values, tokens=tokens).data[0]
    np.testing.assert_array_equal(signed.z, values)
    assert signed.zmax == -signed.zmin == pytest.approx(np.abs(values).max())
    assert signed.colorscale[0][1] == style.DIVERGING[0]
    silent = hidden_heatmap(np.maximum(values, 0), tokens=tokens, name="ReLU output").data[0]
    assert silent.zmin == 0
    assert silent.colorscale[0][1] == style.SEQUENTIAL[0]


def test_a_choice_of_units_is_labelled_with_their_numbers(tokens):
    figure = hidden_heatmap(np.ones((7, 3)), tokens=tokens, units=[5, 90, 17])
    assert list(figure.layout.xaxis.ticktext) == ["5", "90", "17"]
    with pytest.raises(ValueError, match="units has 2 entries, but there are 3 columns of values"):
        hidden_heatmap(np.ones((7, 3)), tokens=tokens, units=[5, 90])


def test_silent_share_is_fixed_to_0_1(tokens):
    figure = silent_units(np.full((2, 7), 0.8), tokens=tokens, layers=["layer 0", "layer 1"])
    assert list(figure.layout.yaxis.range) == [0, 1]
    assert [trace.name for trace in figure.data] == ["layer 0", "layer 1"]
    np.testing.assert_allclose(figure.data[1].y, 0.8)
    with pytest.raises(ValueError, match="share holds 80; a weight or probability lies between 0 and 1"):
        silent_units(np.full((2, 7), 80), tokens=tokens, layers=["layer 0", "layer 1"])


def test_strongest_units_by_absolute_value():
    figure = strongest_bars([0.1, -3.0, 2.0, 0.0], token="·cat", top=2)
    assert list(figure.data[0].x) == [-3.0, 2.0]
    assert list(figure.layout.yaxis.ticktext) == ["1", "2"]
    assert "(2 strongest of 4)" in figure.layout.xaxis.title.text
    assert figure.layout.xaxis.range[0] < -3
    assert len(set(figure.data[0].marker.color)) == 2
    with pytest.raises(ValueError, match="top is 0; show at least 1 unit"):
        strongest_bars([1.0], token="a", top=0)


def test_unit_writes_is_sorted_by_effect():
    figure = unit_writes(["down", "up", "<b>"], effects=[-1.0, 2.0, 0.5], unit=12)
    assert list(figure.data[0].x) == [2.0, 0.5, -1.0]
    assert list(figure.layout.yaxis.ticktext) == ["up", "&lt;b&gt;", "down"]
    assert figure.data[0].marker.color[0] == style.POSITIVE
    assert figure.data[0].marker.color[2] == style.NEGATIVE


@pytest.mark.parametrize(
    ("activation", "function"),
    [("relu", lambda x: max(0.0, x)), ("gelu", lambda x: x * 0.5 * (1 + erf(x / sqrt(2))))],
)
def test_dots_lie_on_the_curve(activation, function):
    before = [-2.0, -0.5, 0.0, 1.5]
    figure = activation_curve(before, activation=activation, token="·cat")
    curve, dots, rug = figure.data
    np.testing.assert_allclose(dots.x, before)
    np.testing.assert_allclose(dots.y, [function(value) for value in before], rtol=1e-6)
    np.testing.assert_allclose(curve.y, [function(float(value)) for value in curve.x], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(rug.x, before)
    assert [note.text for note in figure.layout.annotations] == ["3 at or below 0", "1 above 0"]


def test_unknown_activation():
    with pytest.raises(ValueError, match="activation is 'swish'; choose one of relu, gelu"):
        activation_curve([1.0], activation="swish", token="a")
