"""The view model of the Surgery page."""

from __future__ import annotations

import doctest
from pathlib import Path

import numpy as np
import pytest

import transformer
from transformer.interventions.head_importance import Importance, head_importance
from transformer.runs.head_places import Head, all_heads
from views.surgery import surgery_view_model as module
from views.surgery.surgery_view_model import SurgeryChoices, surgery_view_model

SENTENCE = "The old man ___ the sea."


def test_the_example_of_the_docstring_is_true(monkeypatch):
    monkeypatch.chdir(Path(__file__).parents[2])
    found = doctest.testmod(module)
    assert found.attempted and not found.failed


@pytest.mark.parametrize("number", ["p", "change", "kl"])
@pytest.mark.parametrize("name", ["translator", "gpt", "bert"])
def test_every_measured_head_has_one_cell(tiny_checkpoint, name, number):
    trace = transformer.trace(tiny_checkpoint(name), SENTENCE)
    importance = head_importance(trace)
    selected = importance.heads[-1]
    shown = surgery_view_model(trace, selected, SurgeryChoices(number=number), importance=importance).importance_map
    cells = {}
    for one in importance.measured:
        cells[shown.rows.index((one.place.stack, one.place.kind, one.place.layer)), one.place.head] = one
    assert len(cells) == np.isfinite(shown.values).sum() == sum(shown.n_heads)
    for cell, one in cells.items():  # p is in per cent
        expected = 100 * (np.exp(one.change) - 1) if number == "p" else getattr(one, number)
        assert shown.values[cell] == pytest.approx(expected, rel=1e-4, abs=1e-6)
    largest = np.nanmax(np.abs(shown.values))
    assert set(shown.numbered) - {shown.selected} <= {c for c in cells if abs(shown.values[c]) >= largest / 3} != set()
    assert {c for c in cells if abs(shown.values[c]) > largest / 3} <= set(shown.numbered), (
        "no strong colour without one"
    )
    assert cells[shown.selected].place == selected
    starts = {row for row in range(1, len(shown.rows)) if shown.rows[row][:2] != shown.rows[row - 1][:2]}
    assert set(shown.breaks) == starts


def test_edits_are_crossed_where_they_take_a_head_away_and_change_the_answer(tiny_checkpoint):
    checkpoint = tiny_checkpoint("translator")
    trace = transformer.trace(checkpoint, SENTENCE)
    edits = ("zero:decoder.1.cross.1", "mean:encoder.0.self.0", "scale:encoder.1.self.1=2", "drop:decoder.0.self")
    shown = surgery_view_model(trace, Head("encoder", "self", 0, 0), SurgeryChoices(edits))
    drawn = shown.importance_map
    assert [(*drawn.rows[row], head) for row, head in drawn.crossed] == [
        ("decoder", "cross", 1, 1), ("encoder", "self", 0, 0),
    ]  # fmt: skip
    assert np.isnan(drawn.values).all() and shown.importance == Importance(all_heads(checkpoint.config), ())
    assert shown.found.answer_after.text == transformer.decode(
        checkpoint, SENTENCE, edits=transformer.edits_from(checkpoint, edits)
    ).text  # fmt: skip
