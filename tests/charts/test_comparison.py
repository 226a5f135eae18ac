"""At which layer, and in which words, two runs come apart."""

from __future__ import annotations

import numpy as np
import pytest

from charts.comparison import stream_distance


def test_distance_is_one_minus_cosine_on_a_fixed_scale():
    figure = stream_distance([[1.0, 0.5], [1 - 1e-13, 0.0]], steps=["embedding", "layer 0"], labels=["a", "b / c"])
    heatmap, texts = figure.data
    np.testing.assert_allclose(heatmap.z, [[0, 0.5], [0, 1]])
    assert (heatmap.zmin, heatmap.zmax) == (0, 1)
    assert list(texts.text) == ["0", "0.5", "0", "1"], "a rounding error is no difference"
    assert figure.layout.yaxis.range[0] < figure.layout.yaxis.range[1], "the last layer is on top"
    assert list(figure.layout.xaxis.ticktext) == ["a", "b / c"]


def test_opposite_directions_lengthen_the_scale_and_what_is_no_cosine_is_refused():
    assert stream_distance([[-0.5, 1.0]], steps=["embedding"], labels=["a", "b"]).data[0].zmax == 2
    with pytest.raises(ValueError, match="cosine holds 1.5; a cosine lies in"):
        stream_distance([[1.5]], steps=["embedding"], labels=["a"])
    with pytest.raises(ValueError, match="cosine has shape"):
        stream_distance([[1.0]], steps=["embedding"], labels=["a", "b"])


def test_many_tokens_carry_no_numbers():
    assert len(stream_distance(np.ones((2, 17)), steps=["a", "b"], labels=list("abcdefghijklmnopq")).data) == 1
