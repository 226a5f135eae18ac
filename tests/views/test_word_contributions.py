"""Contributions of words: one bar per word in the order of the sentence, coloured by sign."""

from __future__ import annotations

import numpy as np
import pytest

from charts.figures.decoding_figures import patch_contributions, word_contributions
from charts.toolkit import style


def test_bars_carry_the_numbers_and_repeated_words_stay_apart() -> None:
    values = np.array([0.25, -0.5, 0.125])
    figure = word_contributions(values, words=["so", "<b>", "so"], of="good & bad")
    (trace,) = figure.data
    assert np.allclose(trace.y, values) and list(trace.x) == [0, 1, 2]
    assert list(figure.layout.xaxis.ticktext) == ["so", "&lt;b&gt;", "so"]
    assert list(trace.marker.color) == [style.POSITIVE, style.NEGATIVE, style.POSITIVE]
    # A bar points up where p falls without the word, so the axis names a loss.
    assert figure.layout.yaxis.title.text == "p(good &amp; bad) lost without the word"
    assert figure.layout.xaxis.title.text == "word that is left out"
    low, high = figure.layout.yaxis.range
    assert low < -0.5 and high > 0.25


def test_the_axes_of_an_image_name_patches() -> None:
    figure = word_contributions([0.25, -0.5], words=["r1c1", "r1c2"], of="3", are_patches=True)
    assert figure.layout.yaxis.title.text == "p(3) lost without the patch"
    assert figure.layout.xaxis.title.text == "patch that is hidden"


def test_many_words_have_no_numbers_on_their_bars() -> None:
    figure = word_contributions(np.linspace(-0.1, 0.1, 40), words=["w"] * 40, of="good")
    assert figure.data[0].text is None


def test_what_is_no_difference_of_probabilities_is_refused() -> None:
    with pytest.raises(ValueError, match="hold −1.5; a difference of two probabilities"):
        word_contributions([0.1, -1.5], words=["a", "b"], of="good")
    with pytest.raises(ValueError, match=r"shape \(2,\); it must be \[3 × word\]"):
        word_contributions([0.1, 0.2], words=["a", "b", "c"], of="good")


def test_a_patch_is_tinted_by_what_it_contributes_and_says_how_much() -> None:
    figure = patch_contributions([0.5, -0.25, 0, 0.1], ink=np.zeros((4, 2, 2)), names=list("abcd"), of="3")
    texts = [one.text for one in figure.layout.annotations]
    assert texts == ["+0.50", "−0.25", "+0.00", "+0.10"]
    tints = [shape.fillcolor for shape in figure.layout.shapes]
    assert tints[0] == "rgba(213, 94, 0, 0.750)" and tints[1] == "rgba(0, 114, 178, 0.375)"
