"""One row of attention, step by step, and overviews of heads."""

from __future__ import annotations

import numpy as np
import pytest

from charts.toolkit import style
from views.attention.attention_row_figures import dot_product, row_on_picture, score_pipeline, value_mix


def test_pipeline_shows_scores_what_the_mask_leaves_powers_and_weights(causal_view):
    figure = score_pipeline(causal_view, head=1, row=2)
    scores, left, score_mask, powers, power_mask, weights, weight_mask = figure.data
    np.testing.assert_array_equal(scores.y, causal_view.scores[1, 2])
    np.testing.assert_array_equal(left.y[:3], causal_view.scores[1, 2, :3])
    np.testing.assert_array_equal(weights.y[:3], causal_view.weights[1, 2, :3])
    assert np.isnan(left.y[3:]).all()
    assert np.isnan(powers.y[3:]).all()
    assert np.isnan(weights.y[3:]).all()
    assert max(powers.y[:3]) == 1
    np.testing.assert_allclose(powers.y[:3] / np.sum(powers.y[:3]), weights.y[:3], rtol=1e-5)
    for mask in (score_mask, power_mask, weight_mask):
        assert list(mask.x) == [3, 4]
        assert mask.marker.pattern.shape == "/"
    assert list(figure.layout.yaxis4.range) == [0, 1]
    assert list(figure.layout.xaxis4.ticktext) == ["&lt;s&gt;", "·le", "·chat", "·&lt;i&gt;", "."]
    assert "query: ·chat, head 1" in figure.layout.xaxis4.title.text
    assert "hides 2 of 5 keys" in figure.layout.annotations[1].text
    whole = score_pipeline(causal_view, head=0, row=4)  # a panel that equals the previous one is omitted
    assert [trace.type for trace in whole.data] == ["bar"] * 3
    assert "none is masked" in whole.layout.annotations[0].text
    np.testing.assert_array_equal(whole.data[2].y, causal_view.weights[0, 4])
    assert set(whole.data[2].textposition) <= {"outside", "auto"}, "also a bar of no height has its number"
    assert whole.data[2].textposition[int(np.argmin(whole.data[2].y))] == "outside"
    assert "query" in whole.layout.xaxis3.title.text


def test_pipeline_names_the_head_or_row_that_does_not_exist(causal_view):
    with pytest.raises(ValueError, match="head is 3, but there are only 3; choose 0 to 2"):
        score_pipeline(causal_view, head=3, row=0)
    with pytest.raises(ValueError, match="row is 9, but there are only 5; choose 0 to 4"):
        score_pipeline(causal_view, head=0, row=9)


def test_dot_product_shows_products_sum_and_score():
    figure = dot_product([1.0, -2.0, 3.0, 0.5], key=[2.0, 1.0, 1.0, 0.0], query_token="·a", key_token="<s>")
    np.testing.assert_allclose(figure.data[2].y, [2.0, -2.0, 3.0, 0.0])
    assert figure.layout.annotations[2].text == "<b>q × k: the sum is 3; the score is 3 ÷ √4 = 1.5</b>"
    biased = dot_product([1.0], key=[2.0], query_token="a", key_token="b", bias=0.5)
    assert biased.layout.annotations[2].text == "<b>q × k: the sum is 2; the score is 2 ÷ √1 + 0.5 = 2.5</b>"
    assert figure.layout.annotations[1].text == "<b>k of &lt;s&gt;</b>"
    assert figure.data[2].marker.color[0] == style.POSITIVE
    assert figure.data[2].marker.color[1] == style.NEGATIVE
    assert list(figure.layout.yaxis.range) == list(figure.layout.yaxis2.range), "q and k share a scale"
    with pytest.raises(ValueError, match="key has shape"):
        dot_product([1.0, 2.0], key=[1.0], query_token="a", key_token="b")


def test_the_parts_of_the_mix_add_up_to_the_output(tokens, numbers):
    weights, values = numbers.dirichlet(np.ones(7)), numbers.normal(size=(7, 4))
    figure = value_mix(weights, values=values, tokens=tokens, shown=3)
    *bars, output = figure.data
    assert len(bars) == 3 + 1
    assert bars[-1].name == "4 other tokens together"
    np.testing.assert_allclose(output.y, weights @ values, rtol=1e-4)
    np.testing.assert_allclose(sum(np.asarray(trace.y) for trace in bars), weights @ values, rtol=1e-4)
    longest = int(np.argmax(np.linalg.norm(weights[:, None] * values, axis=1)))
    assert any(trace.name.startswith(style.escape(tokens.labels[longest])) for trace in bars)
    assert len(value_mix(weights, values=values, tokens=tokens, shown=7).data) == 7 + 1, "no others left"
    with pytest.raises(ValueError, match="shown is 8; choose 1 to 7 keys"):
        value_mix(weights, values=values, tokens=tokens, shown=8)


def test_a_row_on_the_picture_has_its_weights_over_the_whole_picture() -> None:
    weights, picture = np.arange(8).reshape(2, 2, 2) / 10, "data:image/png;base64,"
    figure = row_on_picture(weights, picture=picture, names=["a", "b"], labels=["r1c1", "r1c2", "r2c1", "r2c2"])
    maps = [trace for trace in figure.data if trace.type == "heatmap"]
    assert [np.asarray(trace.z).tolist() for trace in maps] == weights.astype(np.float32).tolist()
    assert (maps[0].zmin, maps[0].zmax, maps[1].text[1][0]) == (0.0, 1.0, "r2c1")
    below = [(image.xref, image.yref, image.x, image.y, image.sizex, image.sizey) for image in figure.layout.images]
    assert below == [("x", "y", -0.5, -0.5, 2, 2), ("x2", "y2", -0.5, -0.5, 2, 2)]
    assert all(list(axis.range) == [1.5, -0.5] for axis in (figure.layout.yaxis, figure.layout.yaxis2))
    stretched = row_on_picture(weights, picture=picture, names=["a", "b"], labels=["", "", "", ""], stretch=True)
    assert stretched.data[0].zmax == pytest.approx(0.7) and "0.7" in stretched.data[1].colorbar.title.text
