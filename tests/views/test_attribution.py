"""The waterfall of a logit: each bar begins where the one above it ends, and their sum is the logit."""

from __future__ import annotations

import numpy as np
import pytest

from views.lens.attribution_figures import attribution_waterfall, measured_effects


def test_every_bar_begins_where_the_last_one_ends():
    figure = attribution_waterfall([0.5, -0.2, 0.1], labels=["a", "·<b>", "c"], total=1.0, n_others=4, of="·$y$")
    steps, total = figure.data
    np.testing.assert_allclose(steps.x, [0.5, -0.2, 0.1, 0.6])
    np.testing.assert_allclose(steps.base, np.concatenate(([0], np.cumsum(steps.x)[:-1])), atol=1e-12)
    assert (steps.base[-1] + steps.x[-1], list(total.x), list(total.y)) == (pytest.approx(1.0), [1.0], [4])
    names = figure.layout.yaxis.ticktext
    assert list(names) == ["a", "·&lt;b&gt;", "c", "4 other parts together", "= the logit"]
    assert figure.layout.xaxis.title.text == "logit of ·&#36;y&#36;"


def test_with_all_parts_drawn_nothing_is_left_over():
    figure = attribution_waterfall([0.5, 0.25], labels=["a", "b"], total=0.75, n_others=0, of="x")
    assert len(figure.data[0].x) == 2 and list(figure.data[1].x) == [0.75]


def test_a_removal_that_no_part_had_has_no_bars_and_no_name():
    figure = measured_effects([0.5, 0.1], zero=[0.4, -0.1], mean=[np.nan, np.nan], labels=["a", "b"], of="x")
    assert [bars.name for bars in figure.data] == ["added (everything else held fixed)", "lost without it"]


def test_one_name_for_each_part():
    with pytest.raises(ValueError, match="labels"):
        attribution_waterfall([0.5], labels=[], total=0.5, n_others=0, of="x")
