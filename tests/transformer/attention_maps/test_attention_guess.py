"""The overlap of a guess with a row of attention, for rows with a known answer."""

from __future__ import annotations

import numpy as np
import pytest

from transformer.attention_maps.attention_guess import score_guess


def test_the_row_itself_overlaps_fully():
    assert score_guess(np.array([0.5, 0.5, 0, 0]), [0, 1]).overlap == pytest.approx(1)
    assert score_guess(np.array([0, 1.0, 0]), {1}).overlap == pytest.approx(1)


def test_nothing_in_common_is_0():
    assert score_guess(np.array([0.5, 0.5, 0, 0]), [2, 3]).overlap == 0


def test_a_guess_is_spread_evenly_over_what_is_painted():
    score = score_guess(np.array([0.7, 0.2, 0.1, 0.0]), [0, 1])
    assert list(score.guess) == [0.5, 0.5, 0, 0]
    assert score.overlap == pytest.approx(0.5 + 0.2)
    assert score.caught == pytest.approx(0.9)
    assert score.evenly == pytest.approx(0.25 + 0.2 + 0.1)


def test_painting_everything_scores_what_no_idea_scores():
    weights = np.array([0.6, 0.3, 0.1, 0.0])
    allowed = np.array([True, True, True, False])
    score = score_guess(weights, [0, 1, 2], allowed=allowed)
    assert score.overlap == pytest.approx(score.evenly) == pytest.approx(1 / 3 + 0.3 + 0.1)
    assert score.caught == pytest.approx(1)


def test_it_is_one_minus_the_total_variation():
    weights = np.random.default_rng(0).dirichlet(np.ones(7))
    score = score_guess(weights, [1, 4, 5])
    assert score.overlap == pytest.approx(1 - np.abs(score.guess - weights).sum() / 2)


@pytest.mark.parametrize(
    ("painted", "message"), [([], "nothing was painted"), ([3], "token 3 cannot"), ([9], "token 9")]
)
def test_an_impossible_guess_is_refused(painted, message):
    with pytest.raises(ValueError, match=message):
        score_guess(np.array([0.5, 0.25, 0.25, 0.0]), painted, allowed=np.array([True, True, True, False]))
