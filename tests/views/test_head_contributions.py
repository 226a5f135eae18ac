"""Outputs of the heads, row by row: the numbers, the scale around 0, the framed head."""

from __future__ import annotations

import numpy as np
import pytest

from views.attention.attention_row_figures import head_contributions

PARTS = np.array([[1.0, -2.0, 0.5], [0.25, 4.0, -1.0]])
BIAS = np.array([0.5, 0.0, -0.5])


def test_every_head_the_bias_and_the_sum_are_rows() -> None:
    figure = head_contributions(PARTS, bias=BIAS, output=PARTS.sum(axis=0) + BIAS, head=1)
    drawn = figure.data[0]
    np.testing.assert_allclose(drawn.z, [[1, -2, 0.5], [0.25, 4, -1], [0.5, 0, -0.5], [1.75, 2, -1]])
    assert (drawn.zmin, drawn.zmax) == (-4.0, 4.0)
    assert list(figure.layout.yaxis.ticktext) == ["head 0", "head 1", "bias b_O", "sum = output"]
    frame = figure.layout.shapes[0]
    assert (frame.y0, frame.y1) == (0.5, 1.5)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [({"head": 2}, "head is 2"), ({"bias": np.zeros(4)}, "bias has shape"), ({"output": 1.0}, "output")],
)
def test_what_does_not_fit_is_refused(wrong: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        head_contributions(PARTS, **{"bias": BIAS, "output": BIAS, "head": 0, **wrong})
