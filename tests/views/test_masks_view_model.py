"""The masks that a reader can choose, and the view model of the Masks page."""

from __future__ import annotations

import doctest
from pathlib import Path

import numpy as np
import pytest

import transformer
from transformer.runs.edit_specs import edits_from
from transformer.runs.head_places import Head
from views.masks import masks_view_model as module
from views.masks.masks_view_model import MaskChoices, masks_view_model, presets

SENTENCE = "The old man ___ the sea."
PLACES = [
    ("translator", "encoder", "self", ("own", "no_padding", "window", "itself", "word")),
    ("translator", "decoder", "self", ("own", "no_causal", "window", "itself", "word")),
    ("translator", "decoder", "cross", ("own", "no_padding", "word")),
    ("gpt", "decoder", "self", ("own", "no_causal", "window", "itself", "word")),
    ("sentiment", "encoder", "self", ("own", "no_padding", "window", "itself", "word")),
]


def test_the_example_of_the_docstring_is_true(monkeypatch):
    monkeypatch.chdir(Path(__file__).parents[2])
    found = doctest.testmod(module)
    assert found.attempted and not found.failed


@pytest.mark.parametrize(("name", "stack", "kind", "offered"), PLACES)
def test_every_preset_gives_the_mask_that_its_edits_give(tiny_checkpoint, name, stack, kind, offered):
    checkpoint = tiny_checkpoint(name)
    trace, location = transformer.trace(checkpoint, SENTENCE), Head(stack, kind, 1, 1)
    own = trace.attention(stack, 1, kind)
    assert presets(own) == offered
    for preset in offered:
        choices = MaskChoices(preset, cells={(1, 0): preset == "itself"})
        shown = masks_view_model(trace, location, choices)
        without_run = choices.without_run(own, checkpoint)
        assert np.array_equal(without_run.allowed, shown.now.allowed)
        assert not without_run.weights[:, ~shown.now.allowed].any()
        alone = transformer.trace(
            checkpoint,
            SENTENCE,
            trace.text if trace.target and trace.source else None,
            edits=edits_from(checkpoint, choices.specs(own)),
        ).attention(stack, 1, kind)
        n_queries = min(len(alone.query), len(own.query))
        assert np.array_equal(shown.now.allowed[:n_queries], alone.allowed[:n_queries, : len(own.key)])
        assert shown.n_blocked == (~shown.now.allowed).sum()
        np.testing.assert_array_equal(shown.difference, shown.now.weights[1] - own.weights[1])
        assert not shown.now.allowed[1, 0] or preset == "itself"


def test_a_row_with_nothing_left_is_named_after_what_it_predicts(tiny_checkpoint):
    trace = transformer.trace(tiny_checkpoint("translator"), SENTENCE)
    view = trace.attention("decoder", 0, "cross")
    choices = MaskChoices().painted([(2, key) for key in range(len(view.key))], allowed=False)
    shown = masks_view_model(trace, Head("decoder", "cross", 0, 0), choices)
    assert shown.empty_rows == (trace.prediction[2],) and shown.predicted_labels == trace.prediction.labels
    plain = masks_view_model(trace, Head("decoder", "self", 0, 0), MaskChoices())
    assert plain.predicted_labels is None and plain.empty_rows == () and not plain.difference.any()
    assert plain.found.changed is trace, "no mask, no second pass"


@pytest.mark.parametrize(
    "choices",
    [
        MaskChoices(),
        MaskChoices("window", size=3, everywhere=False),
        MaskChoices("word", word=2, cells={(0, 1): True, (2, 2): False}),
    ],
)
def test_choices_come_out_of_their_texts(choices):
    assert MaskChoices.from_texts(choices.to_texts()) == choices


def test_what_a_map_has_no_place_for_is_left_out(tiny_checkpoint):
    view = transformer.trace(tiny_checkpoint("translator"), SENTENCE).attention("decoder", 0, "cross")
    wrong = MaskChoices.from_texts(["no_causal", "allow 999-0,1-0,x", "block 0-999", "unknown 3"])
    assert wrong.fitting(view) == MaskChoices(cells={(1, 0): True})


def test_a_stroke_over_a_painted_cell_counts():
    once = MaskChoices().painted([(0, 0), (0, 1)], allowed=False)
    assert once.painted([(0, 1)], allowed=True).cells == {(0, 0): False, (0, 1): True}
