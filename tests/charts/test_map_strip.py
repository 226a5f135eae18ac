"""Maps through training: values, masks and frames."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from charts.figures.map_strip import map_strip
from charts.toolkit import style

NAMES = ("0", "<300>")


def test_every_step_shows_the_head_with_its_mask(causal_view):
    later = replace(causal_view, weights=causal_view.weights[::-1].copy())
    figure = map_strip([causal_view, later], head=0, names=NAMES, chosen=1)
    maps = [trace for trace in figure.data if trace.zmax == 1]
    for trace, view in zip(maps, (causal_view, later), strict=True):
        np.testing.assert_array_equal(trace.z[view.allowed], view.weights[0][view.allowed])
        assert np.isnan(trace.z[~view.allowed]).all()
        assert trace.colorscale[-1][1] == style.SEQUENTIAL[-1]
    masks = [trace for trace in figure.data if trace.zmax is None]
    assert len(masks) == 2
    np.testing.assert_array_equal(masks[0].z == 1, ~causal_view.allowed)
    texts = [annotation.text for annotation in figure.layout.annotations]
    assert texts == ["<b>0</b>", "<b>&lt;300&gt;</b>"]
    assert [(shape.xref, shape.line.color) for shape in figure.layout.shapes] == [("x2", style.CHOSEN)]


def test_a_long_sentence_keeps_the_strip_on_the_screen(causal_view):
    n = 100
    token = causal_view.query.tokens[1]
    tokens = type(causal_view.query)(tuple(replace(token, index=index) for index in range(n)))
    weights, allowed = np.full((1, n, n), 1 / n, np.float32), np.ones((n, n), bool)
    long = replace(causal_view, weights=weights, scores=weights, allowed=allowed, query=tokens, key=tokens)
    figure = map_strip([long], head=0, names=("0",), chosen=0)
    assert figure.layout.height <= 400
    assert figure.layout.yaxis.showticklabels is False


def test_a_strip_that_makes_no_sense_is_refused(causal_view, target):
    fine = {"head": 0, "names": NAMES, "chosen": 0}
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
