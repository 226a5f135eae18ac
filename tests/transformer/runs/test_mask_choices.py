"""The masks that a reader can choose."""

from __future__ import annotations

import numpy as np
import pytest

import transformer
from transformer.interventions.experiment import experiment
from transformer.runs.edit_specs import edits_from
from transformer.runs.mask_choices import MaskChoices, presets

SENTENCE = "The old man ___ the sea."
PLACES = [
    ("translator", "encoder", "self", ("own", "no_padding", "window", "itself", "word")),
    ("translator", "decoder", "self", ("own", "no_causal", "window", "itself", "word")),
    ("translator", "decoder", "cross", ("own", "no_padding", "word")),
    ("gpt", "decoder", "self", ("own", "no_causal", "window", "itself", "word")),
    ("sentiment", "encoder", "self", ("own", "no_padding", "window", "itself", "word")),
]


@pytest.mark.parametrize(("name", "stack", "kind", "offered"), PLACES)
def test_every_preset_gives_the_mask_that_its_edits_give(tiny_checkpoint, name, stack, kind, offered):
    checkpoint = tiny_checkpoint(name)
    trace = transformer.trace(checkpoint, SENTENCE)
    own = trace.attention(stack, 1, kind)
    assert presets(own) == offered
    for preset in offered:
        choices = MaskChoices(preset, cells={(1, 0): preset == "itself"})
        now = experiment(trace, edits_from(checkpoint, choices.specs(own))).changed.attention(stack, 1, kind)
        without_run = choices.without_run(own, checkpoint)
        assert np.array_equal(without_run.allowed, now.allowed)
        assert not without_run.weights[:, ~now.allowed].any()
        alone = transformer.trace(
            checkpoint,
            SENTENCE,
            trace.text if trace.target and trace.source else None,
            edits=edits_from(checkpoint, choices.specs(own)),
        ).attention(stack, 1, kind)
        n_queries = min(len(alone.query), len(own.query))
        assert np.array_equal(now.allowed[:n_queries], alone.allowed[:n_queries, : len(own.key)])
        assert not now.allowed[1, 0] or preset == "itself"


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
