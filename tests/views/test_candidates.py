"""Decoding: candidates, reshaping, confidence, attention of one step."""

from __future__ import annotations

import numpy as np
import pytest

from charts.figures.decoding_figures import answer_confidence, candidate_bars, reshaping, step_attention
from charts.toolkit import style


def test_candidates_are_on_a_scale_from_0_to_1_with_the_chosen_one_coloured(candidates):
    figure = candidate_bars(candidates, rest=0.05)
    bars = figure.data[0]
    np.testing.assert_allclose(bars.x, [0.6, 0.2, 0.1, 0.05, 0.05], rtol=1e-6)
    assert list(figure.layout.yaxis.ticktext) == ["·chat", "·&lt;b&gt;", "·chien", ".", "all others"]
    assert list(figure.layout.xaxis.range) == [0, 1]
    assert bars.marker.color[1] == style.CHOSEN
    assert bars.marker.color[0] == style.BAR
    assert list(bars.marker.pattern.shape) == ["", "", "/", "/", ""], "what was cut off is hatched"
    assert list(bars.text) == ["0.600", "0.200", "0.100 cut", "0.0500 cut", "0.0500"]
    assert {trace.name for trace in figure.data[1:]} == {"candidate", "chosen", "cut off"}


def test_the_word_of_the_text_is_named_at_its_bar(candidates):
    figure = candidate_bars(candidates.assign(typed=[False, True, False, False]), rest=0.05)
    assert list(figure.data[0].text) == ["0.600", "0.200  in your text", "0.100 cut", "0.0500 cut", "0.0500"]


def test_a_stretched_axis_says_so(candidates):
    figure = candidate_bars(candidates, stretch=True)
    assert figure.layout.xaxis.range[1] == pytest.approx(0.6)
    assert "stretched: ends at 0.6" in figure.layout.xaxis.title.text
    assert "stretched" not in candidate_bars(candidates).layout.xaxis.title.text


def test_candidates_need_no_flags(candidates):
    figure = candidate_bars(candidates[["piece", "probability"]])
    assert len(figure.data) == 1, "nothing to explain in a legend"
    with pytest.raises(ValueError, match="probability holds 6; a weight or probability lies between 0 and 1"):
        candidate_bars(candidates.assign(probability=candidates["probability"] * 10))


def test_reshaping_shows_the_same_candidates_four_times(candidates):
    figure = reshaping(candidates, temperature=0.5, rule="top-k <2>")
    for trace, column in zip(figure.data[:4], ("logit", "scaled", "probability", "final"), strict=True):
        np.testing.assert_allclose(trace.x, candidates[column], rtol=1e-6)
    assert figure.layout.annotations[1].text == "<b>÷ 0.5</b>"
    assert list(figure.data[2].marker.pattern.shape) == ["", "", "/", "/"]
    assert figure.data[0].marker.pattern.shape is None
    assert "excluded by top-k &lt;2&gt;" in {trace.name for trace in figure.data}
    assert list(figure.layout.yaxis.ticktext)[1] == "·&lt;b&gt;"


def test_confidence_of_every_step(target):
    figure = answer_confidence(
        [0.9, 0.5, 0.25, 0.1, 0.999], tokens=target, runner_up=[0.05, 0.4, 0.2, 0.05, 0], current=2
    )
    bars, ticks = figure.data
    np.testing.assert_allclose(bars.y, [0.9, 0.5, 0.25, 0.1, 0.999], rtol=1e-6)
    np.testing.assert_allclose(ticks.y, [0.05, 0.4, 0.2, 0.05, 0], rtol=1e-6)
    assert [colour == style.CHOSEN for colour in bars.marker.color] == [False, False, True, False, False]
    assert list(figure.layout.yaxis.range) == [0, 1]
    assert list(figure.layout.xaxis.ticktext)[3] == "·&lt;i&gt;"
    with pytest.raises(ValueError, match=r"probabilities has shape \(2,\); it must be \[5 × step\]"):
        answer_confidence([0.1, 0.2], tokens=target)


def test_masked_keys_have_no_bar_but_a_hatched_column(target):
    figure = step_attention([0.5, 0.25, 0.25, 0, 0], tokens=target, allowed=[True, True, True, False, False])
    bars, mask = figure.data
    assert np.isnan(bars.y[3:]).all()
    np.testing.assert_allclose(bars.y[:3], [0.5, 0.25, 0.25])
    assert list(mask.x) == [3, 4]
    assert list(mask.y) == [1, 1]
    assert mask.marker.pattern.shape == "/"
    assert list(figure.layout.yaxis.range) == [0, 1]
    assert len(step_attention([0.5, 0.25, 0.25, 0, 0], tokens=target).data) == 1
    stretched = step_attention([0.5, 0.25, 0.25, 0, 0], tokens=target, stretch=True)
    assert stretched.layout.yaxis.range[1] == 0.5
    assert "stretched: ends at 0.5" in stretched.layout.yaxis.title.text
