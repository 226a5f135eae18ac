"""The tree of a beam search, the alignment of words, and texts compared by their log probability."""

from __future__ import annotations

import numpy as np
import pytest

from charts.figures.beam_tree import search_tree
from charts.figures.decoding_figures import alignment_heatmap, reshaping, running_log_probability
from charts.toolkit import style
from tests.figures import small_tree


def boxes(figure) -> dict[str, tuple[float, float]]:
    """Return (middle of the box, row) by text; grey boxes have a minus in front."""
    found = {}
    for trace in (trace for trace in figure.data if trace.type == "bar"):
        grey = isinstance(trace.marker.color, str)
        for base, width, row, text in zip(trace.base, trace.x, trace.y, trace.text, strict=True):
            found[f"{'-' if grey else ''}{text}@{base + width / 2:.0f}"] = (base + width / 2, row)
    return found


def test_the_answer_runs_along_the_top_and_the_rest_below() -> None:
    figure = search_tree(small_tree(), pruned=1)
    places = boxes(figure)
    assert places["·&lt;b&gt;@1"] == (1, 0) and places["&lt;/s&gt; #1@2"] == (2, 0)
    assert places["·&#36;y&#36;@1"] == (1, 1) and places["-·&#37;{z}@1"] == (1, 2)
    # Children of the output first, then those of the other text; one pruned branch of each text is drawn.
    assert places["·incompr…@2"][1] == 1 and places["-·&#37;{z}@2"][1] == 2 and places["·&#37;{z}@2"][1] == 3
    assert not any(" #3@" in name for name in places), "an ending that is not among the best two is not drawn"
    assert "-·&#36;y&#36;@2" not in places and "-·&#36;y&#36;@2" in boxes(search_tree(small_tree(), pruned=2))


def test_lines_lead_from_parent_to_child_and_are_thickest_for_the_answer() -> None:
    figure = search_tree(small_tree())
    lines = {trace.name: trace for trace in figure.data if trace.type == "scatter" and trace.mode == "lines"}
    assert lines["the output"].line.width > lines["kept"].line.width > lines["pruned"].line.width
    assert lines["the output"].line.color == style.CHOSEN
    assert [y for y in lines["the output"].y if y is not None] == [0, 0, 0, 0]
    assert lines["the output"].x[4] == pytest.approx(2 - 0.36), "it ends at the left edge of the second box"


def test_colours_are_the_log_probability_so_far_and_finished_texts_are_framed() -> None:
    kept = next(t for t in search_tree(small_tree()).data if t.type == "bar" and t.marker.showscale)
    by_text = dict(zip(kept.text, zip(kept.marker.color, kept.marker.line.color, strict=True), strict=True))
    assert by_text["·&lt;b&gt;"] == (-0.9, style.CHOSEN)
    assert by_text["&lt;/s&gt; #1"] == (-1.0, style.CATEGORICAL[2])
    assert kept.marker.cmax == 0 and kept.marker.cmin == min(kept.marker.color)
    hover = dict(zip(kept.text, kept.customdata, strict=True))
    assert "after “&lt;b&gt;”" in hover["·incompr…"] and "·incomprehensible" in hover["·incompr…"]
    assert "Σ log p = −1.9" in hover["·incompr…"] and "still open" in hover["·incompr…"]
    assert "finished, rank 1 by score" in hover["&lt;/s&gt; #1"]


def test_a_window_shows_only_its_steps() -> None:
    figure = search_tree(small_tree(), first=2)
    assert {name.rsplit("@")[1] for name in boxes(figure)} == {"2"}
    assert list(figure.layout.xaxis.tickvals) == [2]
    with pytest.raises(ValueError, match="first is 3, but the search took 2 steps; choose 1 to 2"):
        search_tree(small_tree(), first=3)


def test_the_best_source_word_of_each_row_is_framed() -> None:
    weights = [[0.7, 0.2, 0.1], [0.1, 0.1, 0.8]]
    figure = alignment_heatmap(weights, target=["le", "chat"], source=["the", "<i>cat", "."], best=[0, 2])
    np.testing.assert_allclose(figure.data[0].z, weights, rtol=1e-6)
    assert [(shape.x0 + shape.x1) / 2 for shape in figure.layout.shapes] == [0, 2]
    assert [(shape.y0 + shape.y1) / 2 for shape in figure.layout.shapes] == [0, 1]
    assert figure.data[0].zmax == 1 and figure.data[0].zmin == 0
    with pytest.raises(ValueError, match=r"weights has shape \(2, 3\); it must be \[1 × target word"):
        alignment_heatmap(weights, target=["le"], source=["the", "cat", "."])


def test_log_probabilities_add_up_from_0() -> None:
    figure = running_log_probability(
        {"greedy": [-0.5, -1.0, -0.25], "beam": [-1.0]}, tokens={"greedy": ["a", "b", "c"], "beam": ["d"]}
    )
    np.testing.assert_allclose(figure.data[0].y, [0, -0.5, -1.5, -1.75])
    np.testing.assert_allclose(figure.data[1].y, [0, -1])
    with pytest.raises(ValueError, match="tokens of beam has 2 entries"):
        running_log_probability({"beam": [-1.0]}, tokens={"beam": ["d", "e"]})


def test_reshaping_outlines_what_was_before(candidates) -> None:
    figure = reshaping(candidates, temperature=0.5, rule="top-k 2")
    outline = next(trace for trace in figure.data if trace.name and trace.name.startswith("before"))
    np.testing.assert_allclose(outline.x, candidates["own"], rtol=1e-6)
    assert outline.xaxis == figure.data[3].xaxis == "x4"
    assert [colour != "rgba(0,0,0,0)" for colour in outline.marker.color] == [False, False, True, True], "cut: greyed"
    texts = next(trace for trace in figure.data if trace.type == "scatter")
    assert list(texts.text) == ["0.400 → 0.75", "0.300 → 0.25", "0.200 → cut", "0.100 → cut"]
    without = reshaping(candidates.drop(columns="own"), temperature=0.5, rule="top-k 2")
    assert not any(trace.name and trace.name.startswith("before") for trace in without.data)


def test_reshaping_of_a_given_text_colours_the_prediction_as_the_choice(candidates) -> None:
    candidates = candidates.assign(chosen=[False, True, False, False], kept=True)
    figure = reshaping(candidates, temperature=1.0, rule="no cut", given=True)
    assert list(figure.data[0].marker.color) == [style.CHOSEN, style.NEUTRAL, style.BAR, style.BAR]
    assert {"predicted", "given"} <= {trace.name for trace in figure.data}
    assert "chosen" not in {trace.name for trace in figure.data}
    candidates = candidates.assign(chosen=[True, False, False, False])
    right = reshaping(candidates, temperature=1.0, rule="no cut", given=True)
    assert list(right.data[0].marker.color)[:2] == [style.CHOSEN, style.BAR], "predicted and given alike"
