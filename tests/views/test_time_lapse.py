"""Maps through training, and the roles of all heads: values, masks, frames, and clicks."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from charts.toolkit import style
from tests.figures import roles_through_training
from transformer.heads.role_measures import ROLES
from views.training.time_lapse_figures import ROLE_COLOURS, map_strip, role_timeline

NAMES, NOTES = ("0", "<300>"), ("broad", "previous")


def drawn(**values: object):
    given = {"groups": ("encoder", "<decoder>"), "moments": NAMES, "current": 1, "chosen": (0, 1, 1), **values}
    return role_timeline(roles_through_training(), **given)


def test_every_step_shows_the_head_with_its_mask(causal_view):
    later = replace(causal_view, weights=causal_view.weights[::-1].copy())
    figure = map_strip([causal_view, later], head=0, names=NAMES, notes=NOTES, chosen=1)
    maps = [trace for trace in figure.data if trace.zmax == 1]
    for trace, view in zip(maps, (causal_view, later), strict=True):
        np.testing.assert_array_equal(trace.z[view.allowed], view.weights[0][view.allowed])
        assert np.isnan(trace.z[~view.allowed]).all()
        assert trace.colorscale[-1][1] == style.SEQUENTIAL[-1]
    masks = [trace for trace in figure.data if trace.zmax is None]
    assert len(masks) == 2
    np.testing.assert_array_equal(masks[0].z == 1, ~causal_view.allowed)
    texts = [annotation.text for annotation in figure.layout.annotations]
    assert texts == ["<b>0</b>", "<b>&lt;300&gt;</b>", *NOTES]
    assert [(shape.xref, shape.line.color) for shape in figure.layout.shapes] == [("x2", style.CHOSEN)]


def test_a_long_sentence_keeps_the_strip_on_the_screen(causal_view):
    n = 100
    token = causal_view.query.tokens[1]
    tokens = type(causal_view.query)(tuple(replace(token, index=index) for index in range(n)))
    weights, allowed = np.full((1, n, n), 1 / n, np.float32), np.ones((n, n), bool)
    long = replace(causal_view, weights=weights, scores=weights, allowed=allowed, query=tokens, key=tokens)
    figure = map_strip([long], head=0, names=("0",), notes=("",), chosen=0)
    assert figure.layout.height <= 400
    assert figure.layout.yaxis.showticklabels is False


def test_a_strip_that_makes_no_sense_is_refused(causal_view, target):
    fine = {"head": 0, "names": NAMES, "notes": NOTES, "chosen": 0}
    with pytest.raises(ValueError, match="views has 0 entries"):
        map_strip([], **fine)
    with pytest.raises(ValueError, match="names has 2 entries, but there are 1 views"):
        map_strip([causal_view], **fine)
    with pytest.raises(ValueError, match="head is 3, but there are only 3"):
        map_strip([causal_view] * 2, **{**fine, "head": 3})
    with pytest.raises(ValueError, match="chosen is 2"):
        map_strip([causal_view] * 2, **{**fine, "chosen": 2})
    swapped = type(target)(tuple(replace(token, id=token.id + 1) for token in target))
    with pytest.raises(ValueError, match="views have different tokens"):
        map_strip([causal_view, replace(causal_view, query=swapped)], **fine)


def test_every_role_with_a_name_has_a_colour_of_its_own():
    assert set(ROLE_COLOURS) == {"induction", *ROLES} - {"broad", "none"}
    assert len(set(ROLE_COLOURS.values())) == len(ROLE_COLOURS)
    assert style.QUIET not in ROLE_COLOURS.values()


def test_cells_are_coloured_by_role_and_grey_by_sharpness():
    figure = drawn()
    first, second = (trace for trace in figure.data if trace.type == "heatmap")
    place = list(ROLE_COLOURS).index("previous")
    assert first.z[3].tolist() == [0.75, 1.5 + place]
    assert (np.delete(first.z, 3, axis=0) == 0.75).all()
    assert np.isnan(second.z[2:]).all(), "the second stack has one layer only"
    scale = first.colorscale
    share = first.z[3, 1] / first.zmax
    low, high = [stop for stop in scale if stop[0] <= share][-1], next(stop for stop in scale if stop[0] >= share)
    assert low[1] == high[1] == ROLE_COLOURS["previous"]


def test_markers_report_the_head_and_the_step_that_was_clicked():
    markers = [trace for trace in drawn().data if trace.type == "scatter" and trace.customdata is not None]
    for trace in markers:
        for x, y, (_, layer, head, moment) in zip(trace.x, trace.y, trace.customdata, strict=True):
            assert (x, y) == (moment, 2 * layer + head)
    assert {tuple(row) for trace in markers for *row, _ in trace.customdata} == {
        (0, 0, 0), (0, 0, 1), (0, 1, 0), (0, 1, 1), (1, 0, 0), (1, 0, 1),
    }  # fmt: skip
    hovers = [text for trace in markers for text in trace.text]
    assert "layer 1, head 1<br>previous &lt;token&gt; (0.75)<br>entropy ÷ maximum 0.25" in hovers


def test_the_current_step_and_the_chosen_head_are_framed():
    frames = [shape for shape in drawn().layout.shapes if shape.type == "rect"]
    assert [(f.xref, f.x0, f.x1) for f in frames[:2]] == [("x", 0.5, 1.5), ("x2", 0.5, 1.5)]
    assert (frames[2].xref, frames[2].y0, frames[2].y1) == ("x", 2.5, 3.5)
    assert len([shape for shape in drawn(chosen=None).layout.shapes if shape.type == "rect"]) == 2


def test_the_legend_names_the_roles_that_occur():
    names = [trace.name for trace in drawn().data if trace.showlegend is None and trace.name]
    assert names == ["previous &lt;token&gt;", "no clear role: looks everywhere", "… at only a few tokens"]


def test_a_timeline_that_makes_no_sense_is_refused():
    with pytest.raises(ValueError, match="heads lacks the columns"):
        role_timeline(roles_through_training().drop(columns="spread"), groups=("a", "b"), moments=NAMES, current=0)
    with pytest.raises(ValueError, match="current is 2, but there are only 2"):
        drawn(current=2)
    with pytest.raises(ValueError, match="chosen group is 2"):
        drawn(chosen=(2, 0, 0))
