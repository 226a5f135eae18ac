"""The gradient of one step, block by block."""

from __future__ import annotations

import numpy as np
import pytest

from charts.figures.gradients import gradient_by_block


def test_every_block_stands_in_its_row_and_column_and_what_is_not_there_stays_empty() -> None:
    lengths = [[0.5, np.nan], [np.nan, 0.125], [np.nan, 0.25]]
    figure = gradient_by_block(lengths, kinds=["outside", "norms"], places=["embedding", "encoder 0", "encoder 1"])
    cells, texts = figure.data
    np.testing.assert_array_equal(cells.z, np.float32(lengths))
    assert (cells.zmin, cells.zmax) == (0, 0.5)
    assert list(zip(texts.x, texts.y, texts.text, strict=True)) == [(0, 0, "0.5"), (1, 1, "0.125"), (1, 2, "0.25")]
    assert list(figure.layout.yaxis.ticktext) == ["embedding", "encoder 0", "encoder 1"]
    assert list(figure.layout.xaxis.ticktext) == ["outside", "norms"]


def test_a_gradient_of_nothing_can_be_drawn() -> None:
    assert gradient_by_block([[0.0]], kinds=["norms"], places=["encoder 0"]).data[0].zmax == 1


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(ValueError, match="less than 0"):
        gradient_by_block([[-1.0]], kinds=["norms"], places=["encoder 0"])
    with pytest.raises(ValueError, match="gradient has shape"):
        gradient_by_block([[1.0]], kinds=["norms"], places=["encoder 0", "encoder 1"])
