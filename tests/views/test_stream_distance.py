"""The layers and words in which two runs diverge."""

from __future__ import annotations

import numpy as np
import pytest

from views.compare.stream_distance_figure import stream_distance


def test_the_scale_ends_at_the_largest_distance_of_equal_words_and_says_so():
    cosine = [[1.0, 0.1, 1.0], [1 - 1e-13, 0.2, 0.96]]
    figure = stream_distance(cosine, steps=["embedding", "layer 0"], labels=["a", "b / c", "d"], equal=[1, 0, 1])
    heatmap, texts, grey = figure.data
    np.testing.assert_allclose(heatmap.z, [[0, np.nan, 0], [0, np.nan, 0.04]], atol=1e-6)
    assert heatmap.zmin == 0 and heatmap.zmax == pytest.approx(0.04)
    assert "scale ends at 0.04" in heatmap.colorbar.title.text
    assert list(texts.text) == ["0", "0", "0", "0.04"], "a rounding error is no difference"
    assert list(grey.text) == ["0.9", "0.8"], "another word was different from the start"
    assert figure.layout.yaxis.range[0] < figure.layout.yaxis.range[1], "the last layer is on top"
    assert list(figure.layout.xaxis.ticktext) == ["a", "b / c", "d"]


def test_what_is_no_cosine_is_refused_and_no_difference_has_a_scale():
    assert stream_distance([[1.0, 1.0]], steps=["embedding"], labels=["a", "b"]).data[0].zmax == 1
    with pytest.raises(ValueError, match="cosine holds 1.5; a cosine lies in"):
        stream_distance([[1.5]], steps=["embedding"], labels=["a"])
    with pytest.raises(ValueError, match="cosine has shape"):
        stream_distance([[1.0]], steps=["embedding"], labels=["a", "b"])
    with pytest.raises(ValueError, match="equal has 1 entries, but there are 2 labels"):
        stream_distance([[1.0, 1.0]], steps=["embedding"], labels=["a", "b"], equal=[True])


def test_many_tokens_carry_no_numbers():
    assert len(stream_distance(np.ones((2, 17)), steps=["a", "b"], labels=list("abcdefghijklmnopq")).data) == 1
