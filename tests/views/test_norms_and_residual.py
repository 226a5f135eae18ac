"""LayerNorm and the residual stream."""

from __future__ import annotations

import numpy as np
import pytest

from charts.figures.norm_figures import gain_and_bias, norm_statistics, position_distribution
from charts.figures.residual_figures import residual_growth, sublayer_contribution
from charts.figures.vector_strips import Strip, vector_strips


def test_norm_statistics_draws_before_and_after_of_both(tokens):
    before, after = np.arange(7.0), np.zeros(7)
    figure = norm_statistics(before, std_before=before + 1, mean_after=after, std_after=after + 1, tokens=tokens)
    dots = {(trace.yaxis, trace.name): trace.y for trace in figure.data if trace.mode == "markers"}
    np.testing.assert_array_equal(dots["y", "before"], before)
    np.testing.assert_array_equal(dots["y2", "before"], before + 1)
    np.testing.assert_array_equal(dots["y2", "after normalising"], after + 1)
    assert list(figure.layout.xaxis2.ticktext)[1] == "·the"
    with pytest.raises(ValueError, match="standard deviation before holds -1; it cannot be less than 0"):
        norm_statistics(before, std_before=before - 1, mean_after=after, std_after=after, tokens=tokens)


def test_gain_starts_at_1_and_bias_at_0():
    figure = gain_and_bias([1.5, 0.25], bias=[-0.5, 0.5])
    gain, bias = figure.data
    assert gain.base == 1.0
    np.testing.assert_allclose(gain.base + np.asarray(gain.y), [1.5, 0.25])
    np.testing.assert_allclose(gain.customdata, [1.5, 0.25])
    np.testing.assert_allclose(bias.y, [-0.5, 0.5])
    assert gain.marker.color[0] != gain.marker.color[1]
    with pytest.raises(ValueError, match="bias has shape"):
        gain_and_bias([1.0, 1.0], bias=[0.0])


def test_distribution_counts_every_number_once(numbers):
    before = numbers.normal(3, 5, size=64).astype(np.float32)
    after = (before - before.mean()) / before.std()
    figure = position_distribution(before, after=after, token="<s>")
    bars = [trace for trace in figure.data if trace.type == "bar"]
    rugs = [trace for trace in figure.data if trace.type == "scatter"]
    assert [sum(trace.y) for trace in bars] == [64, 64]
    np.testing.assert_array_equal(rugs[0].x, before)
    assert "standard deviation 1" in figure.layout.annotations[1].text
    assert figure.layout.annotations[0].text.startswith("<b>&lt;s&gt; before")
    lines = sorted(shape.x0 for shape in figure.layout.shapes if shape.xref == "x")
    np.testing.assert_allclose(
        lines, [before.mean() - before.std(), before.mean(), before.mean() + before.std()], rtol=1e-5
    )
    assert figure.layout.xaxis.matches is None
    assert position_distribution(before, after=after, token="a", shared_axis=True).layout.xaxis.matches == "x2"


def test_growth_highlights_one_token_and_draws_the_mean(tokens, numbers):
    norms = np.abs(numbers.normal(size=(3, 7))).astype(np.float32)
    figure = residual_growth(norms, steps=["embedding", "0 self", "0 <ff>"], tokens=tokens, highlighted=6)
    assert len(figure.data) == 8
    chosen, mean = figure.data[-2:]
    assert chosen.name == "·the₂", "the second of two equal words"
    np.testing.assert_array_equal(chosen.y, norms[:, 6])
    np.testing.assert_allclose(mean.y, norms.mean(axis=1))
    assert sum(bool(trace.showlegend) for trace in figure.data[:-1]) == 2
    assert list(figure.layout.xaxis.ticktext) == ["embedding", "0 self", "0 &lt;ff&gt;"]
    with pytest.raises(ValueError, match="highlighted token is 7, but there are only 7"):
        residual_growth(norms, steps=["a", "b", "c"], tokens=tokens, highlighted=7)


def test_contribution_has_a_scale_from_0_and_one_around_0(tokens):
    ratio = np.linspace(0.1, 2, 14).reshape(2, 7)
    cosine = np.linspace(-0.5, 0.9, 14).reshape(2, 7)
    figure = sublayer_contribution(ratio, cosine=cosine, sublayers=["0 self", "0 ff"], tokens=tokens)
    first, second = (trace for trace in figure.data if trace.type == "heatmap")
    np.testing.assert_allclose(first.z, ratio, rtol=1e-6)
    assert (first.zmin, first.zmax) == (0, 2)
    assert (second.zmin, second.zmax) == (-1, 1)
    texts = next(trace for trace in figure.data if trace.type == "scatter")
    assert texts.text[0] == "0.100"
    with pytest.raises(ValueError, match="cosine holds 1.5; a cosine lies in"):
        sublayer_contribution(ratio, cosine=cosine + 0.6, sublayers=["0 self", "0 ff"], tokens=tokens)


def test_the_cells_of_the_figure_are_the_vectors_that_are_added() -> None:
    """A reader who adds a column skips the normalised copy, although it is computed second."""
    rng = np.random.default_rng(0)
    x, update = rng.normal(size=(2, 8))
    shown = [
        Strip("x", x),
        Strip("copy", (x - x.mean()) / x.std(), normalized=True, is_copy=True),
        Strip("+", update),
        Strip("=", x + update),
    ]
    texts = {"spread": "std", "numbers": "", "all_of_it": ""}
    cells, *others = vector_strips(shown, root_mean_square=False, **texts).data
    values = np.asarray(cells.z)
    assert np.isnan(values[1]).all()
    np.testing.assert_allclose(np.nansum(values[:3], axis=0), values[3], atol=1e-6)
    assert any(trace.mode == "text" and set(trace.y) == {1} and len(trace.x) == 5 for trace in others)
