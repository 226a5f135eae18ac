"""Embeddings and the vocabulary: rows, windows, gradients, projection, neighbours."""

from __future__ import annotations

import numpy as np
import pytest

from charts.figures.embedding_rows import embedding_rows, embedding_window
from charts.figures.gradients import gradient_rows
from charts.figures.vocabulary import nearest_neighbours, vocabulary_projection
from charts.toolkit import style


def test_embedding_rows_shows_the_rows_and_marks_their_true_height(tokens, numbers):
    rows = numbers.normal(size=(7, 4)).astype(np.float32)
    figure = embedding_rows(rows, tokens=tokens, vocabulary_size=100)
    marks, lines, heatmap = figure.data
    np.testing.assert_array_equal(heatmap.z, rows)
    assert heatmap.zmax == -heatmap.zmin == pytest.approx(np.abs(rows).max())
    assert list(marks.y) == [token.id + 0.5 for token in tokens]
    # Each line begins at the id's height and ends at the same relative height as the row.
    assert lines.y[3] == tokens[1].id + 0.5
    assert lines.y[4] == pytest.approx((1 + 0.5) / 7 * 100)
    assert list(figure.layout.yaxis.range) == [100, 0]
    assert figure.layout.yaxis3.ticktext[2] == "·&lt;b&gt;x&lt;/b&gt;"


def test_the_followed_token_stands_out_in_e_and_among_the_rows(tokens, numbers):
    rows = numbers.normal(size=(7, 4)).astype(np.float32)
    for place in (0, 3):
        figure = embedding_rows(rows, tokens=tokens, vocabulary_size=100, followed=place)
        marks, _, mark, line, heatmap = figure.data
        np.testing.assert_array_equal(heatmap.z, rows)
        assert list(mark.y) == [tokens[place].id + 0.5] == [marks.y[place]]
        assert list(line.y) == pytest.approx([tokens[place].id + 0.5, (place + 0.5) / 7 * 100])
        assert mark.marker.line.width > 2 * marks.marker.line.width and mark.marker.line.color == style.CHOSEN
        assert marks.marker.line.color != style.CHOSEN
        frame = [shape for shape in figure.layout.shapes if shape.yref == "y3"]
        assert [(box.y0, box.y1) for box in frame] == [(place - 0.5, place + 0.5)]
    with pytest.raises(ValueError, match="followed"):
        embedding_rows(rows, tokens=tokens, vocabulary_size=100, followed=7)


def test_embedding_rows_refuses_an_id_outside_the_vocabulary(tokens, numbers):
    with pytest.raises(ValueError, match="the id of token '·&amp;' is 7, but there are only 7; choose 0 to 6"):
        embedding_rows(numbers.normal(size=(7, 4)), tokens=tokens, vocabulary_size=7)


def test_embedding_window_leaves_a_gap_where_rows_are_left_out(numbers):
    rows = numbers.normal(size=(4, 3)).astype(np.float32)
    figure = embedding_window(rows, row_ids=[2, 3, 6, 7], displays=["a", "b", "c", "d"], looked_up=[3, 6])
    shown = figure.data[0].z
    np.testing.assert_array_equal(shown[[0, 1, 3, 4]], rows)
    assert np.isnan(shown[2]).all()
    labels = figure.layout.yaxis.ticktext
    assert labels[2] == "⋮"
    assert ["▶" in label for label in labels] == [False, True, False, True, False]


def test_embedding_window_refuses_unordered_rows_and_unknown_ids():
    with pytest.raises(ValueError, match=r"row_ids are \[3, 2\]; give each row of E once, in rising order"):
        embedding_window(np.ones((2, 3)), row_ids=[3, 2], displays=["a", "b"], looked_up=[3])
    with pytest.raises(ValueError, match=r"looked_up names the ids \[9\]"):
        embedding_window(np.ones((2, 3)), row_ids=[2, 3], displays=["a", "b"], looked_up=[9])


def test_gradient_rows_has_one_bar_per_fetched_row_and_one_for_all_others(tokens):
    moved = np.zeros(50, dtype=np.float32)
    for token in tokens:
        moved[token.id] = 0.1 * token.id
    figure = gradient_rows(moved, tokens=tokens)
    bars, others, fetched = figure.data
    assert list(figure.layout.yaxis.ticktext)[-1] == "largest of the other 44"
    assert len(bars.x) == 6 + 1, "the repeated word has one row"
    np.testing.assert_allclose(bars.x[:-1], [0.1 * token_id for token_id in range(2, 8)], rtol=1e-6)
    assert bars.x[-1] == 0
    assert len(others.x) == 44
    assert not np.any(others.y)
    assert sorted(fetched.x) == [2, 3, 4, 5, 6, 7]


def test_gradient_rows_shows_when_other_rows_move_too(tokens):
    moved = np.zeros(50)
    moved[[20, 30]] = (0.25, 0.5)
    assert gradient_rows(moved, tokens=tokens).data[0].x[-1] == 0.5


def test_projection_marks_the_sentence_and_keeps_every_point(tokens, numbers):
    points = numbers.normal(size=(40, 2)).astype(np.float32)
    displays = [f"piece{index}" for index in range(40)]
    figure = vocabulary_projection(points, displays=displays, tokens=tokens, explained=(0.123456, 0.05))
    rest, marked = figure.data
    assert len(rest.x) == 34
    assert len(rest.text) == 34
    assert len(marked.x) == 6, "a repeated word is one point"
    by_id = dict(zip(marked.customdata, zip(marked.x, marked.y, strict=True), strict=True))
    np.testing.assert_array_equal(by_id[3], points[3])
    assert figure.layout.xaxis.title.text == "first principal component (12.3% of the variance)"
    with pytest.raises(ValueError, match="displays has 3 entries, but there are 40 points"):
        vocabulary_projection(points, displays=displays[:3], tokens=tokens)


def test_neighbours_on_a_scale_from_0_to_1():
    figure = nearest_neighbours(["a", "b"], similarities=[0.9, 0.25], of="·cat")
    np.testing.assert_allclose(figure.data[0].x, [0.9, 0.25])
    assert list(figure.layout.yaxis.ticktext) == ["a", "b"]
    assert list(figure.layout.xaxis.range) == [0, 1]
    assert "to ·cat" in figure.layout.xaxis.title.text
    below = nearest_neighbours(["a", "b"], similarities=[0.9, -0.2], of="·cat")
    assert below.layout.xaxis.range[0] < -0.2, "a negative similarity must not be cut off"
