"""Two curves on one axis."""

from __future__ import annotations

import numpy as np
import pytest

from views.bugs.two_curves_figure import two_curves


def test_both_curves_are_drawn_in_full():
    figure = two_curves([1.0, 2.0], other=[3.0, 4.0], at=["a", "b"], title="size", across="layer", names=("x", "<y>"))
    assert [list(trace.y) for trace in figure.data] == [[1.0, 2.0], [3.0, 4.0]]
    assert [trace.name for trace in figure.data] == ["x", "&lt;y&gt;"]
    assert list(figure.layout.xaxis.ticktext) == ["a", "b"]


def test_steps_keep_their_distances():
    figure = two_curves(
        [1.0, 0.1, 0.01], other=[1, 1, 1], at=[0, 10, 100], title="loss", across="step", logarithmic=True
    )
    assert list(figure.data[0].x) == [0, 10, 100]
    assert figure.layout.yaxis.type == "log"


def test_what_does_not_fit_is_refused():
    with pytest.raises(ValueError, match="other"):
        two_curves([1.0, 2.0], other=[3.0], at=["a", "b"], title="size", across="layer", names=("original", "other"))
    with pytest.raises(ValueError, match="above 0"):
        two_curves(np.ones(2), other=np.zeros(2), at=[0, 1], title="loss", across="step", logarithmic=True)
