"""The idea of each figure that is a page's own, and what no figure draws.

That every number arrives, escaped and on named axes: test_all_figures.py, tests/pages/test_drawn.py, and the golden
values, which hold what each figure draws of the shipped models.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from charts.figures.activation_curve import activation_curve
from charts.figures.aligned_measures import aligned_measures
from charts.figures.bars import Bars, Panel, Points, bars, columns, small_multiples
from charts.figures.beam_tree import search_tree
from charts.figures.curves import Curve, curves
from charts.figures.distributions import distributions
from charts.figures.embedding_rows import embedding_rows, embedding_window
from charts.figures.heat_maps import HeatMap, heat_map, heat_maps
from charts.figures.lens_grid import ON_A_PHONE, lens_grid, narrow_part
from charts.figures.map_strip import MAX_CELLS, map_strip
from charts.figures.patch_contributions import patch_contributions
from charts.figures.reshaping import reshaping
from charts.figures.row_on_picture import row_on_picture
from charts.figures.stream_distance import stream_distance
from charts.figures.token_boxes import merge_tree, token_lengths
from charts.figures.training_curves import live_loss, live_shares, loss_curves, rate_curve, score_curve
from charts.figures.vocabulary import vocabulary_projection
from charts.figures.waterfall import waterfall
from charts.toolkit import style
from charts.toolkit.axes import Axis
from tests.figures import sequence, small_lens, small_measures, small_tree
from transformer.runs.attention_view import AttentionView

ONES = np.ones((2, 4))
PLAIN = {"rows": Axis("r"), "columns": Axis("c"), "hover": "", "value": "p"}
HISTORY = pd.DataFrame(
    {
        "step": [50, 100],
        "learning_rate": [1e-3, 5e-4],
        "train_loss": [5.5, 4.5],
        "dev_loss": [None, 4.75],
        "dev_score": [None, 12.5],
    }
)
WORDS = sequence(("a", "b"))
REFUSED: dict[str, tuple[Callable[[], object], str]] = {
    "a bar without a label": (lambda: bars(Bars([0.1, 0.2]), rows=Axis("", ["a"])), "shape"),
    "a column without a place": (lambda: columns(Bars([0.1, 0.2]), along=Axis("", ["a"]), up=""), "shape"),
    "a bar without a colour": (lambda: bars(Bars([0.1], colours=[]), rows=Axis("", ["a"])), "colours has 0"),
    "a negative length": (lambda: heat_map([[-1.0]], **PLAIN, signed=False), "less than 0"),
    "a row without a name": (lambda: heat_map(ONES, **{**PLAIN, "rows": Axis("r", ["a"])}), "labels has 1"),
    "a curve beyond the last place": (lambda: curves([Curve("a", [1, 2], ())], x=[0], across="", up=""), "1 places"),
    "a cosine above 1": (lambda: stream_distance([[1.5]], steps=["0"], labels=["a"], equal=[True]), "cosine holds 1.5"),
    "a part without a name": (lambda: waterfall([0.5], labels=[], total=0.5, n_others=0, of="x"), "labels"),
    "an unknown colour": (lambda: lens_grid(small_lens(), colour="entropy"), "choose one of probability, rank"),
    "a column that is not there": (lambda: lens_grid(small_lens(), selected=4), "only 4"),
    "an unknown activation": (lambda: activation_curve([1.0], activation="swish", token="a"), "relu, gelu"),
    "an id outside E": (lambda: embedding_rows(ONES, tokens=WORDS, vocabulary_size=2, followed=0), "choose 0 to 1"),
    "rows out of order": (
        lambda: embedding_window(ONES, row_ids=[3, 2], displays=["a", "b"], looked_up=[3]),
        "rising order",
    ),
    "an id that is not drawn": (
        lambda: embedding_window(ONES, row_ids=[2, 3], displays=["a", "b"], looked_up=[9]),
        r"\[9\]",
    ),
    "points without a name": (lambda: vocabulary_projection(ONES[:, :2], displays=["a"], tokens=WORDS), "displays"),
    "no strip": (lambda: map_strip([], head=0, names=(), chosen=0), "views has 0 entries"),
    "a history without a column": (lambda: loss_curves(HISTORY.drop(columns="dev_loss")), "dev_loss"),
    "a loss without a step": (lambda: live_loss([1.0, 2.0], steps=[0], last_step=1), "loss has shape"),
    "a share above 1": (lambda: live_shares({"right": [2.0]}, steps=[0], last_step=1), "right holds 2"),
    "a step after the search": (lambda: search_tree(small_tree(), first=3), "choose 1 to 2"),
    "pieces that come from nowhere": (lambda: merge_tree([["a", "b"], ["ac"]]), "'ac'"),
    "pieces that are lost": (lambda: merge_tree([["a", "b"], ["a"]]), r"\['b'\]"),
    "no ruler": (lambda: token_lengths({}), "empty"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_figure_is_refused(name: str) -> None:
    draw, word = REFUSED[name]
    with pytest.raises(ValueError, match=word):
        draw()


# ---- heat maps and curves -------------------------------------------------------------------------------------------


def test_several_heat_maps_share_one_scale_around_0() -> None:
    first = np.array([[1.0, -2.0]])
    panels = [HeatMap("a", first, ""), HeatMap("b", 3 * first, "")]
    figure = heat_maps(panels, rows=Axis("r"), columns=Axis("c"), shared=True)
    assert {(trace.zmin, trace.zmax) for trace in figure.data} == {(-6, 6)}
    own = heat_maps(panels, rows=Axis("r"), columns=Axis("c")).data
    assert [(trace.zmin, trace.zmax) for trace in own] == [(-2, 2), (-6, 6)]
    ended = heat_map(ONES, **PLAIN, end=(1, "1 position"))
    assert {shape.y0 for shape in ended.layout.shapes} == {0.5}, "the line stands after the last position"


def test_numbers_that_are_never_negative_begin_at_0_and_cells_can_be_framed() -> None:
    figure = heat_map([[0.5, np.nan]], **PLAIN, signed=False, texts=[["0.5", ""]], frames=[(0, 0), (0, None)])
    cells, texts = figure.data
    assert (cells.zmin, cells.zmax, list(texts.text)) == (0, 0.5, ["0.5"])
    assert [(shape.x0, shape.x1) for shape in figure.layout.shapes] == [(-0.48, 0.48), (-0.5, 1.5)]


def test_curves_of_one_name_and_colour_are_listed_once_and_may_end_early() -> None:
    drawn = [Curve("a", [1, 2, 3], (), colour="#000000", texts=["<s>"]), Curve("a", [1], (), colour="#000000")]
    first, second = curves(drawn, x=range(3), across="", up="").data
    assert (first.showlegend, second.showlegend, list(second.x)) == (True, False, [0])
    assert first.text[0] == "&lt;s&gt;"


def test_a_distance_of_equal_words_has_a_colour_and_that_of_others_none() -> None:
    cosine = [[1.0, 0.1, 1.0], [1 - 1e-13, 0.2, 0.96]]
    heatmap, texts, grey = stream_distance(cosine, steps=["a", "b"], labels=["a", "b / c", "d"], equal=[1, 0, 1]).data
    np.testing.assert_allclose(heatmap.z, [[0, np.nan, 0], [0, np.nan, 0.04]], atol=1e-6)
    assert list(texts.text) == ["0", "0", "0", "0.04"], "a rounding error is no difference"
    assert list(grey.text) == ["0.9", "0.8"] and heatmap.zmax == pytest.approx(0.04)


def test_curves_have_eight_colours_then_other_dashes() -> None:
    many = [Curve(str(row), ONES[0] * row, ("%{y}",), points=["<s>"], points_hover=("%{text}",)) for row in range(9)]
    drawn = curves(many, x=range(4), across="x", up="y").data
    assert list(drawn[3].y) == [1.0] and drawn[2].line.color == drawn[3].marker.color != drawn[0].line.color
    assert drawn[0].line.color == drawn[16].line.color and drawn[0].line.dash != drawn[16].line.dash


def test_losses_are_drawn_only_where_they_were_measured_and_all_curves_have_the_same_steps() -> None:
    losses = loss_curves(HISTORY)
    assert [*losses.data[["step", "value"]].itertuples(index=False, name=None)] == [(50, 5.5), (100, 4.5), (100, 4.75)]
    drawn = [
        curve.to_dict()["layer"][0]["encoding"]
        for curve in (losses, score_curve(HISTORY, score="a long name of a score"), rate_curve(HISTORY))
    ]
    assert all(one["x"]["scale"] == {"domain": [0, 100], "nice": False} for one in drawn)
    assert isinstance(drawn[1]["y"]["title"], list), "a long title wraps"


def test_a_live_curve_changes_nothing_but_its_data() -> None:
    """Otherwise the browser rebuilds the chart at every report, and it flickers."""

    def description(chart: object) -> str:
        return json.dumps({name: part for name, part in chart.to_dict().items() if name != "datasets"})

    for draw in (
        lambda n: live_loss([3.4] * n, steps=range(n), last_step=100),
        lambda n: live_shares({"right": [0.1 * n] * n}, steps=range(n), last_step=100, at=n - 1),
    ):
        assert description(draw(1)) == description(draw(9))
    low, high = live_loss([40.0, 0.0], steps=[0, 1], last_step=7).to_dict()["layer"][0]["encoding"]["y"]["scale"][
        "domain"
    ]
    assert low > 0 and high == 40, "the axis is logarithmic"


# ---- bars -----------------------------------------------------------------------------------------------------------


def test_rows_of_bars_leave_out_an_empty_series_and_have_room_for_numbers() -> None:
    series = [Bars([0.5, -0.1], name="added", signed=True), Bars([np.nan, np.nan], name="mean")]
    figure = bars(series, rows=Axis("", ["a", "<b>"]))
    (drawn,) = figure.data
    assert (drawn.name, list(drawn.marker.color)) == ("added", [style.POSITIVE, style.NEGATIVE])
    assert figure.layout.xaxis.range[0] < -0.1 and figure.layout.xaxis.visible is False
    assert list(figure.layout.yaxis.ticktext) == ["a", "&lt;b&gt;"]
    named = bars(Bars([1.0], texts=()), rows=Axis("", ["a"]), across="p", legend={"chosen": style.CHOSEN})
    assert [trace.name for trace in named.data] == [None, "chosen"] and named.data[0].text is None


def test_masked_places_are_hatched_and_each_name_is_listed_once() -> None:
    masked, values = np.array([False, True]), [0.5, np.nan]
    panel = Panel([Bars(values, name="p"), Points([0.1, 0.2], "", "q", "black")], "", masked=masked, limits=(0, 1))
    drawn = small_multiples([panel, panel], along=Axis("", ["a", "b"])).data
    assert [trace.showlegend for trace in drawn] == [True, True, True, False, False, False]
    assert [list(drawn[place].x) for place in (2, 5)] == [[1], [1]]
    joined = columns(
        [Points([1, 2], "", "a", "red"), Points([3, 4], "", "b", "blue")], along=Axis(""), up="", joined=True
    )
    assert [y for y in joined.data[0].y if y is not None] == [1, 3, 2, 4], "a line leads from one to the other"
    few, many = (columns(Bars(np.ones(n)), along=Axis(""), up="").data[0].text for n in (20, 21))
    assert len(few) == 20 and many is None


def test_what_was_cut_off_is_hatched_and_the_chosen_word_coloured(candidates: pd.DataFrame) -> None:
    shown = reshaping(candidates, temperature=0.5, rule="top-k 2").data
    for trace, column in zip(shown[:4], ("logit", "scaled", "probability", "final"), strict=True):
        np.testing.assert_allclose(trace.x, candidates[column], rtol=1e-6)
    assert list(shown[3].marker.pattern.shape) == ["", "", "/", "/"]
    assert [colour == style.CHOSEN for colour in shown[0].marker.color] == [False, True, False, False]


def test_a_patch_that_is_missed_is_marked_by_its_sign() -> None:
    patches = patch_contributions([0.5, -0.25, 0, 0.1], ink=np.zeros((4, 2, 2)), names=list("abcd"), of="3").layout
    assert [one.text for one in patches.annotations] == ["+0.50", "−0.25", "+0.00", "+0.10"]
    assert patches.shapes[0].fillcolor != patches.shapes[1].fillcolor


# ---- attention ------------------------------------------------------------------------------------------------------


def test_a_row_on_the_picture_lies_over_the_whole_picture() -> None:
    weights = np.arange(8).reshape(2, 2, 2) / 10
    figure = row_on_picture(weights, picture="data:image/png;base64,", names=["a", "b"], labels=["", "", "", ""])
    maps = [trace for trace in figure.data if trace.type == "heatmap"]
    assert [np.asarray(trace.z).tolist() for trace in maps] == weights.astype(np.float32).tolist()
    below = [(image.x, image.y, image.sizex, image.sizey) for image in figure.layout.images]
    assert below == [(-0.5, -0.5, 2, 2)] * 2


def test_every_step_of_training_shows_the_head_with_its_mask(causal_view: AttentionView) -> None:
    later = replace(causal_view, weights=causal_view.weights[::-1].copy())
    figure = map_strip([causal_view, later], head=0, names=("0", "<300>"), chosen=1)
    maps = [trace for trace in figure.data if trace.zmax == 1]
    for trace, view in zip(maps, (causal_view, later), strict=True):
        np.testing.assert_array_equal(trace.z[view.allowed], view.weights[0][view.allowed])
        assert np.isnan(trace.z[~view.allowed]).all()
    assert [shape.xref for shape in figure.layout.shapes] == ["x2"], "the chosen one is framed"


@pytest.mark.parametrize("n", [97, 256])
def test_small_maps_show_the_largest_weight_of_a_block_and_say_so(causal_view: AttentionView, n: int) -> None:
    weights, allowed = (
        np.random.default_rng(0).dirichlet(np.ones(n), size=(1, n)).astype(np.float32),
        np.tri(n, dtype=bool),
    )
    many = sequence([f"w{place}" for place in range(n)])
    long = replace(causal_view, weights=weights, scores=weights, allowed=allowed, query=many, key=many)
    figure = map_strip([long], head=0, names=("a",), chosen=0)
    (drawn,) = [trace for trace in figure.data if trace.zmax == 1]
    assert max(drawn.z.shape) <= MAX_CELLS
    size = int(np.diff(np.asarray(drawn.y))[0])
    assert size > 1
    assert f"{size} × {size}" in drawn.hovertemplate
    for row, column in ((0, 0), (3, 2), (3, 3)):
        block = np.s_[row * size : (row + 1) * size, column * size : (column + 1) * size]
        assert drawn.z[row, column] == weights[0][block][allowed[block]].max()


def test_all_measures_of_a_token_keep_their_own_scale_and_numbers() -> None:
    shares, signed = [trace for trace in aligned_measures(small_measures()).data if trace.type == "heatmap"]
    assert (shares.zmin, shares.zmax) == (0, 1) and (signed.zmin, signed.zmax) == (-1, 1)
    np.testing.assert_allclose(signed.z, [[0.5, -1, 0.00005], [1, -0.5, np.nan]], rtol=1e-6)
    np.testing.assert_array_equal(signed.customdata, [[10.0, -20.0, 0.001], [0.5, -0.25, np.nan]])


# ---- tokens, embeddings, norms --------------------------------------------------------------------------------------


def test_a_distribution_counts_every_number_once(numbers) -> None:
    before = numbers.normal(3, 5, size=64).astype(np.float32)
    after = (before - before.mean()) / before.std()
    figure = distributions({"before": before, "after": after}, place="", across="value")
    assert [sum(trace.y) for trace in figure.data if trace.type == "bar"] == [64, 64]
    lines = sorted(shape.x0 for shape in figure.layout.shapes if shape.xref == "x")
    np.testing.assert_allclose(lines, before.mean() + np.array([-1, 0, 1]) * before.std(), rtol=1e-5)
    given = [Bars([1.5, 0.25], start=1.0)], [Bars([-0.5, 0.5], start=0.0)]
    gain, bias = small_multiples([Panel(series, "") for series in given], along=Axis("")).data
    np.testing.assert_allclose(gain.base + np.asarray(gain.y), [1.5, 0.25])
    assert gain.base == 1 and list(bias.y) == [-0.5, 0.5]


# ---- lens and search ------------------------------------------------------------------------------------------------


def test_the_lens_frames_where_each_answer_is_decided_and_is_bright_where_it_is_near() -> None:
    figure = lens_grid(small_lens())
    frames = [shape for shape in figure.layout.shapes if shape.line.color == style.CHOSEN]
    centres = [((shape.x0 + shape.x1) / 2, (shape.y0 + shape.y1) / 2) for shape in frames]
    assert centres == [(0, 0), (1, 1), (2, 2)], "the fourth is never decided"
    assert figure.layout.yaxis.range[0] < figure.layout.yaxis.range[1], "the last step is on top"
    for colour in ("rank", "divergence"):
        assert lens_grid(small_lens(), colour=colour).data[0].colorscale[0][1] == style.SEQUENTIAL[-1]


@pytest.mark.parametrize(("column", "expected"), [(0, (0, 0)), (2, (1, 1)), (3, (1, 2))])
def test_a_phone_shows_the_columns_around_the_one_that_is_followed(column: int, expected: tuple[int, int]) -> None:
    part, place = narrow_part(small_lens(), column)
    assert (part.first, place) == expected and len(part.read) == ON_A_PHONE
    assert part.read[place] == small_lens().read[column]
