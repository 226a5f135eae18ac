"""The logit lens: words in cells, the frame of the first leading step, colours, competing words."""

from __future__ import annotations

import re

import numpy as np
import pytest

from charts.toolkit import style
from tests.figures import small_lens
from transformer.predictions.lens import WordProbabilities
from views.lens.lens_figures import (
    LONGEST_ON_A_PHONE,
    ON_A_PHONE,
    lens_grid,
    narrow_part,
    word_probabilities,
)


def test_cells_hold_words_and_the_final_one_is_bold():
    figure = lens_grid(small_lens())
    heatmap, texts = figure.data
    np.testing.assert_array_equal(heatmap.z, small_lens().probability.astype(np.float32))
    assert (heatmap.zmin, heatmap.zmax) == (0, 1)
    by_place = {(y, x): text for y, x, text in zip(texts.y, texts.x, texts.text, strict=True)}
    assert by_place[(0, 0)] == "<b>&lt;b&gt;</b>"
    assert by_place[(0, 1)] == "&#36;y&#36;"
    assert by_place[(0, 2)] == "incompre…", "a long word is cut, the hover has it whole"
    assert "·incomprehensible  0.4<br>·&lt;b&gt;  0.3" == heatmap.text[0][2]
    assert figure.layout.yaxis.range[0] < figure.layout.yaxis.range[1], "the last step is on top"
    assert "the prediction" in figure.layout.yaxis.ticktext[-1]


@pytest.mark.parametrize(("column", "expected"), [(0, (0, 0)), (1, (0, 1)), (2, (1, 1)), (3, (1, 2))])
def test_a_phone_shows_the_columns_around_the_one_that_is_followed(column: int, expected: tuple[int, int]) -> None:
    part, place = narrow_part(small_lens(), column)
    assert (part.first, place) == expected and len(part.read) == ON_A_PHONE
    assert part.read[place] == small_lens().read[column]
    narrow = lens_grid(part, selected=place, is_narrow=True)
    assert max(len(re.sub("<.*?>|&.*?;", "", text)) for text in narrow.data[1].text) <= LONGEST_ON_A_PHONE
    assert not narrow.layout.xaxis.title.text and not narrow.data[0].colorbar.title.text, "no room for titles"


def test_a_frame_marks_where_each_answer_is_decided():
    frames = [shape for shape in lens_grid(small_lens()).layout.shapes if shape.line.color == style.CHOSEN]
    centres = [((shape.x0 + shape.x1) / 2, (shape.y0 + shape.y1) / 2) for shape in frames]
    assert centres == [(0, 0), (1, 1), (2, 2)], "the fourth is never decided"


def test_the_followed_words_stand_above_where_they_are_not_the_answer():
    above = [note.text for note in lens_grid(small_lens()).layout.annotations]
    assert above == ["<b>&lt;b&gt;</b>"] * 4
    lens = small_lens(followed=np.array([5, 5, 5, 7]))
    assert not lens_grid(lens).layout.annotations


def test_rank_and_divergence_are_bright_where_the_answer_is_near():
    lens = small_lens()
    rank, divergence = (lens_grid(lens, colour=colour).data[0] for colour in ("rank", "divergence"))
    np.testing.assert_allclose(rank.z, np.log10(lens.rank), rtol=1e-6)
    assert rank.zmax == 2 and list(rank.colorbar.ticktext) == ["1", "10", "100"]
    assert divergence.zmax == 3 and divergence.zmin == 0
    for trace in (rank, divergence):
        assert trace.colorscale[0][1] == style.SEQUENTIAL[-1]
    ink = lens_grid(lens, colour="rank").data[1].textfont.color
    assert ink[0] == "#000000", "rank 1 is bright, so its word is black"
    with pytest.raises(ValueError, match="colour is 'entropy'; choose one of probability, rank, divergence"):
        lens_grid(lens, colour="entropy")


def test_the_selected_column_is_framed():
    shapes = lens_grid(small_lens(), selected=2).layout.shapes
    assert [(shape.x0, shape.x1) for shape in shapes if shape.line.dash == "dot"] == [(1.5, 2.5)]
    with pytest.raises(ValueError, match="selected position is 4, but there are only 4"):
        lens_grid(small_lens(), selected=4)


def test_the_final_word_is_drawn_last_and_named_first():
    course = WordProbabilities(
        ("embedding", "layer 0"), ("a", "b", "c"), (5, 6, 7), np.array([[0.1, 0.9], [0.2, 0], [0.7, 0]])
    )
    figure = word_probabilities(course)
    assert [trace.name for trace in figure.data] == ["c (ranked first earlier)", "b (runner-up)", "a (final)"]
    np.testing.assert_allclose(figure.data[-1].y, [0.1, 0.9], rtol=1e-6)
    assert figure.data[-1].line.color == style.CHOSEN
    assert figure.layout.yaxis.range[0] < 0 and figure.layout.yaxis.range[1] > 1, "a fixed scale of 0…1"
