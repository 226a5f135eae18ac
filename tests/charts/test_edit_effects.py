"""Figures of the effect of a change draw exactly the given numbers."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from charts.figures import edit_effects


def test_candidates_have_two_bars_each_and_the_chosen_one_a_dot():
    rows = pd.DataFrame({"piece": ["a", "b"], "before": [0.9, 0.1], "after": [0.3, 0.6], "chosen": [False, True]})
    figure = edit_effects.candidates_before_and_after(rows, names=("as it is", "changed"))
    assert [bars.name for bars in figure.data] == ["as it is", "changed"]
    np.testing.assert_allclose([bars.x for bars in figure.data], [[0.9, 0.1], [0.3, 0.6]], rtol=1e-6)
    assert list(figure.layout.yaxis.ticktext) == ["a", "● b"]
    assert tuple(figure.layout.xaxis.range) == (0, 1)
    with pytest.raises(ValueError, match="after holds 1.5"):
        edit_effects.candidates_before_and_after(rows.assign(after=[1.5, 0.0]))


def test_divergence_is_never_negative():
    figure = edit_effects.divergence_per_token([0.0, 0.25], labels=["a", "b"])
    assert list(figure.data[0].y) == [0.0, 0.25]
    with pytest.raises(ValueError, match="divergence holds -0.1"):
        edit_effects.divergence_per_token([-0.1], labels=["a"])
    with pytest.raises(ValueError, match="labels has 1 entries"):
        edit_effects.divergence_per_token([0.1, 0.2], labels=["a"])
