"""Measures per token: two fixed scales, exact numbers, and the agreement on the right."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from charts.toolkit import style
from tests.figures import small_measures
from views.attention.trust_figure import aligned_measures


def test_shares_are_sequential_and_signed_rows_are_centred_on_zero():
    heatmaps = [trace for trace in aligned_measures(small_measures()).data if trace.type == "heatmap"]
    shares, signed = heatmaps
    assert (shares.zmin, shares.zmax) == (0, 1) and shares.colorscale[0][1] == style.SEQUENTIAL[0]
    assert (signed.zmin, signed.zmax) == (-1, 1) and signed.colorscale[0][1] == style.DIVERGING[0]
    # Every signed row is scaled by its own maximum; texts and hover show the number itself.
    np.testing.assert_allclose(signed.z, [[0.5, -1, 0.00005], [1, -0.5, np.nan]], rtol=1e-6)
    np.testing.assert_array_equal(signed.customdata, [[10.0, -20.0, 0.001], [0.5, -0.25, np.nan]])
    assert "%{customdata:.9~g}" in signed.hovertemplate


def test_cells_hold_the_real_numbers_and_a_dash_where_nothing_can_be_asked():
    figure = aligned_measures(small_measures(), unit="logit")
    texts = [list(trace.text) for trace in figure.data if trace.type == "scatter"]
    assert texts == [["0.70", "0.20", "0.10"], ["10", "−20", "0", "0.50", "−0.25"]]
    assert [(note.x, note.y) for note in figure.layout.annotations if note.text == "–"] == [(2, 1)]
    assert any("logit" in note.text for note in figure.layout.annotations)


def test_a_row_of_small_numbers_is_not_written_as_zeros():
    """Its colours are scaled by its own maximum, and the legend says so."""
    aligned = small_measures(shares=False)
    first = replace(aligned.measures[0], values=np.array([0.0004, -0.00002, 0.0]))
    figure = aligned_measures(replace(aligned, measures=(first, *aligned.measures[1:])))
    texts = next(list(trace.text) for trace in figure.data if trace.type == "scatter")
    assert texts[:3] == ["0.0004", "−2·10⁻⁵", "0"]


def test_agreement_stands_at_the_right_of_every_row_but_the_one_it_is_with():
    beside = [note.text for note in aligned_measures(small_measures()).layout.annotations if note.xshift == 8]
    assert beside == ["0.50", "−0.25", ""]


def test_without_attention_there_is_one_panel():
    figure = aligned_measures(small_measures(shares=False))
    assert len([trace for trace in figure.data if trace.type == "heatmap"]) == 1
    assert figure.layout.xaxis.title.text == "token that is read"
    assert list(figure.layout.xaxis.ticktext) == ["&lt;s&gt;", "·&lt;b&gt;x&lt;/b&gt;", "·&#37;{z}"]
