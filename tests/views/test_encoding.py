"""Positional encodings of every kind."""

from __future__ import annotations

import numpy as np
import pytest

from views.positions.distance_figures import relative_bias, rotary_angles
from views.positions.encoding_figures import embedding_sum, encoding_heatmap, encoding_waves, position_similarity


def test_encoding_heatmap_is_centred_on_0_and_marks_the_sentence(tokens, numbers):
    table = numbers.normal(size=(12, 6)).astype(np.float32)
    figure = encoding_heatmap(table, tokens=tokens)
    np.testing.assert_array_equal(figure.data[0].z, table)
    assert figure.data[0].zmax == -figure.data[0].zmin == pytest.approx(np.abs(table).max())
    assert {shape.y0 for shape in figure.layout.shapes} == {6.5}, "the line stands after the seventh position"
    assert "7 positions" in figure.layout.annotations[0].text
    assert not encoding_heatmap(table).layout.shapes


def test_encoding_heatmap_refuses_a_table_shorter_than_the_sentence(tokens):
    with pytest.raises(ValueError, match="the sentence has 7 tokens but encoding has only 5 rows"):
        encoding_heatmap(np.ones((5, 4)), tokens=tokens)


def test_waves_are_the_columns_with_dots_at_the_tokens(tokens, numbers):
    table = numbers.normal(size=(12, 6)).astype(np.float32)
    figure = encoding_waves(table, dimensions=[1, 4], tokens=tokens)
    curve, dots = figure.data[2:]
    np.testing.assert_array_equal(curve.y, table[:, 4])
    np.testing.assert_array_equal(dots.y, table[:7, 4])
    assert dots.text[0] == "&lt;s&gt;"
    assert curve.line.color == dots.marker.color != figure.data[0].line.color
    with pytest.raises(ValueError, match="dimension is 6, but there are only 6"):
        encoding_waves(table, dimensions=[6])
    with pytest.raises(ValueError, match="9 dimensions were asked for; choose 1 to 8 curves"):
        encoding_waves(np.ones((3, 20)), dimensions=range(9))


def test_similarity_scale():
    cosine = position_similarity(np.full((3, 3), 0.5))
    assert (cosine.data[0].zmin, cosine.data[0].zmax) == (-1, 1)
    product = position_similarity(np.full((3, 3), 40.0), measure="dot product")
    assert (product.data[0].zmin, product.data[0].zmax) == (-40, 40)
    with pytest.raises(ValueError, match=r"similarity has shape \(2, 3\); it must have as many rows as columns"):
        position_similarity(np.ones((2, 3)))


def test_the_three_heatmaps_of_the_sum_share_one_scale(tokens, numbers):
    token, position = numbers.normal(size=(2, 7, 5)).astype(np.float32)
    figure = embedding_sum(token, position=position, total=token + position, tokens=tokens)
    for trace, values in zip(figure.data, (token, position, token + position), strict=True):
        np.testing.assert_array_equal(trace.z, values)
    limit = max(np.abs(values).max() for values in (token, position, token + position))
    assert {(trace.zmin, trace.zmax) for trace in figure.data} == {(-limit, limit)}
    assert [trace.showscale for trace in figure.data] == [True, False, False]
    with pytest.raises(ValueError, match=r"position has shape \(7, 4\); it must be \[7 × token, 5 × dimension\]"):
        embedding_sum(token, position=position[:, :4], total=token, tokens=tokens)


def test_relative_bias_is_one_curve_a_head(numbers):
    bias = numbers.normal(size=(3, 5)).astype(np.float32)
    figure = relative_bias(bias, distances=range(-2, 3))
    assert [trace.name for trace in figure.data] == ["head 0", "head 1", "head 2"]
    np.testing.assert_array_equal(figure.data[2].y, bias[2])
    assert list(figure.data[2].x) == [-2, -1, 0, 1, 2]
    with pytest.raises(ValueError, match="it must be"):
        relative_bias(bias, distances=range(4))


def test_rotary_curves_are_cosines_and_the_hover_has_the_angle():
    angles = np.array([[0, 0], [np.pi, 0.5], [2 * np.pi, 1.0]], dtype=np.float32)
    figure = rotary_angles(angles, pairs=[0], distances=[0, 5, 10])
    np.testing.assert_allclose(figure.data[0].y, [1, -1, 1], atol=1e-6)
    np.testing.assert_array_equal(figure.data[0].customdata, angles[:, 0])
    assert list(figure.data[0].x) == [0, 5, 10]
    assert figure.data[0].name == "channels 0 and 2", "pair i turns the channels i and i + d_k/2"
