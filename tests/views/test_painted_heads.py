"""A painted pattern: its cells, its texts in the address, and the heads ranked by it."""

from __future__ import annotations

import numpy as np
import pytest

import transformer
from transformer.heads.painted_pattern import known_patterns, pattern_scores
from transformer.runs.painted_cells import cells_from_texts, cells_to_texts
from ui.shell.actions import PaintMask, SelectCell, SetChoice
from ui.shell.focus import Focus
from ui.shell.reducer import State
from views.heads.painted_heads import BLANK, PaintedHeads
from views.heads.pattern import paint


@pytest.fixture
def views(tiny_checkpoint):
    trace = transformer.trace(tiny_checkpoint("gpt"), "The cat and the dog, the cat and the bird.")
    return [trace.attention("decoder", layer, "self") for layer in range(trace.n_layers("decoder"))]


def test_strokes_change_the_ready_pattern(views) -> None:
    ready = known_patterns(views)["previous"]
    found = PaintedHeads(views, "previous", {(3, 2): False, (5, 0): True, (999, 0): True})
    expected = ready.copy()
    expected[3, 2], expected[5, 0] = False, True
    assert ready[3, 2] and not ready[5, 0]
    np.testing.assert_array_equal(found.cells, expected)
    assert found.ranked == pattern_scores(views, expected)
    assert list(found.known) == [*known_patterns(views), BLANK] and not PaintedHeads(views).cells.any()


def test_painted_cells_go_through_the_address() -> None:
    cells = {(2, 1): True, (0, 0): False, (2, 3): True}
    texts = cells_to_texts(cells, on="paint", off="erase")
    assert texts == ("paint 2-1,2-3", "erase 0-0")
    assert cells_from_texts([*texts, "paint 1-x,-", "other 4-4"], on="paint", off="erase") == cells
    assert cells_to_texts({}, on="paint", off="erase") == ()


def test_a_stroke_is_added_to_the_strokes_before() -> None:
    state = State(Focus(), "heads", {"heads": {"heads_painted": ("paint 1-0",)}})
    stroke = PaintMask((SelectCell(2, 1), SelectCell(1, 0)), allowed=False)
    (action,) = paint((7,), state, stroke)
    assert action == SetChoice("heads_painted", ("erase 1-0,2-1",), owner=(7,))
