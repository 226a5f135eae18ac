"""Heads ranked by a pattern: plain loops give the same scores, and a role's pattern its own score."""

from __future__ import annotations

import numpy as np
import pytest

import transformer
from transformer.heads.head_roles import head_roles
from transformer.heads.painted_pattern import known_patterns, pattern_scores

TEXT = "The cat and the dog, the cat and the bird."


@pytest.fixture
def views(tiny_checkpoint):
    trace = transformer.trace(tiny_checkpoint("gpt"), TEXT)
    return [trace.attention("decoder", layer, "self") for layer in range(trace.n_layers("decoder"))]


def test_the_score_is_the_mean_share_of_the_rows_that_can_show_the_pattern(views) -> None:
    pattern = np.zeros_like(views[0].allowed)
    pattern[[3, 3, 5, 2], [1, 2, 0, 4]] = True  # the last one is masked
    found = pattern_scores(views, pattern)
    assert len(found) == sum(view.n_heads for view in views)
    assert [one.score for one in found] == sorted((one.score for one in found), reverse=True)
    for one in found:
        weights = views[one.layer].weights[one.head]
        assert one.score == pytest.approx((weights[3, 1] + weights[3, 2] + weights[5, 0]) / 2)
        assert (one.rows, one.chance) == (2, pytest.approx((2 / 4 + 1 / 6) / 2))


def test_the_pattern_of_a_role_gives_the_score_of_that_role(views) -> None:
    roles = {(role.layer, role.head): role.scores for view in views for role in head_roles(view)}
    patterns = known_patterns(views)
    assert {"previous", "same", "first", "repeated", "induction", "punctuation"} <= set(patterns)
    assert "next" not in patterns  # the next token is masked
    for name in ("previous", "same", "repeated"):
        for one in pattern_scores(views, patterns[name]):
            assert one.score == pytest.approx(roles[one.layer, one.head][name], abs=1e-6)


def test_a_pattern_without_a_row_has_no_score_and_another_shape_is_refused(views) -> None:
    nothing = pattern_scores(views, np.zeros_like(views[0].allowed))
    assert all(np.isnan(one.score) and one.rows == 0 for one in nothing)
    with pytest.raises(ValueError, match=r"cells but the pattern has \(2, 3\)"):
        pattern_scores(views, np.ones((2, 3), dtype=bool))
