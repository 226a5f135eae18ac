"""The view model of the Paths page for a swapped word: numbers equal patching's, and its statements."""

from __future__ import annotations

import doctest
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import transformer
from tests.conftest import ROOT
from transformer.interventions.activation_patching import contrast, head_places, recovered_shares, token_places
from transformer.runs.head_places import Head
from ui.words.texts import page_texts
from views.paths import paths_view_model as module
from views.paths.edge_estimates import edge_claim
from views.paths.paths_view_model import (
    LEAST_SHOWN,
    HeadMap,
    PathsChoices,
    Swap,
    effect_size,
    head_of,
    paths_view_model,
)

CLEAN, CORRUPT = "The cat sat on the mat.", "The dog sat on the mat."
KINDS = ["translator", "gpt", "bert", "sentiment"]


def test_the_example_of_the_docstring_is_true(monkeypatch):
    monkeypatch.chdir(Path(__file__).parents[2])
    found = doctest.testmod(module)
    assert found.attempted and not found.failed


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("patches", ["tokens", "heads"])
def test_every_cell_is_what_patching_measures_there(tiny_checkpoint, kind, patches):
    trace = transformer.trace(tiny_checkpoint(kind), CLEAN)
    shown = paths_view_model(trace, CORRUPT, PathsChoices(patches, every_part=True))
    pair = contrast(trace, CORRUPT)
    assert shown.turn == pair.first_turn and shown.contrast.turns == pair.turns
    expected = {}
    for stack in pair.clean:
        grid = head_places(pair, stack) if patches == "heads" else token_places(pair, shown.turn, stack)
        values = recovered_shares(pair, shown.turn, grid)
        expected |= {place: values[r, c] for r, row in enumerate(grid) for c, place in enumerate(row)}
    assert set(shown.places) == set(expected) and len(shown.places) == len(expected)
    for row, places in enumerate(shown.grid):
        for column, place in enumerate(places):
            if place is None:
                assert np.isnan(shown.values[row, column])
            else:
                assert shown.values[row, column] == pytest.approx(expected[place], abs=1e-5, nan_ok=True)
    assert len(shown.column_labels) == shown.values.shape[1] and shown.limit >= 1
    assert shown.swaps == (Swap("cat", "dog"),)
    if shown.strongest is not None:
        assert shown.values[shown.strongest_cell] == shown.strongest_share
        assert (shown.strongest.part, shown.strongest.layer) != ("residual", 0)


@pytest.mark.parametrize("kind", KINDS)
def test_the_first_map_is_of_the_residual_stream_alone(tiny_checkpoint, kind):
    checkpoint = tiny_checkpoint(kind)
    shown = paths_view_model(transformer.trace(checkpoint, CLEAN), CORRUPT, PathsChoices(every_token=True))
    assert {place.part for place in shown.places} == {"residual"} and len(shown.grid) == 2
    both = len(shown.contrast.clean) > 1
    assert shown.column_breaks == ((len(shown.contrast.clean["encoder"]),) if both else ())
    before, after = shown.predictions
    assert 0 < before[1] <= 1 and 0 < after[1] <= 1
    assert shown.effect != "flips" or (before[0], after[0]) == (shown.answer, shown.other)


@pytest.mark.parametrize(
    "name, sentence, other, drawn",
    [
        ("en-fr", CLEAN, CORRUPT, ["·cat", "·Le"]),
        (
            "gpt-en",
            "He drinks cold milk, she drinks hot tea, he drinks cold",
            "He drinks cold water, she drinks hot tea, he drinks cold",
            ["·milk", "·cold"],
        ),
    ],
)
def test_tokens_at_which_no_patch_has_an_effect_have_no_column(name, sentence, other, drawn):
    trace = transformer.trace(transformer.load(ROOT / "checkpoints" / name), sentence)
    shown = paths_view_model(trace, other)
    labels = [re.sub("[₀-₉]", "", shown.column_labels[column]) for column in shown.columns]
    assert labels == drawn and labels[-1] == shown.reading_token
    largest = np.abs(shown.values).max(axis=0)
    assert shown.columns == tuple(np.flatnonzero(largest >= LEAST_SHOWN)) and len(shown.columns) < len(largest)
    assert shown.column_breaks == ((1,) if name == "en-fr" else ())
    share = shown.values[-1, -1]
    assert shown.arrived_share == (share if name == "en-fr" else None) and (share > 0.95) == (name == "gpt-en")
    every = paths_view_model(trace, other, PathsChoices(every_token=True))
    assert every.columns == tuple(range(len(largest)))


def test_the_word_that_is_compared_is_not_a_part_of_one_if_a_whole_word_changes():
    checkpoint = transformer.load(ROOT / "checkpoints" / "en-fr")
    part, this, every, that = (checkpoint.tokenizer.encode(word)[-1] for word in ("arranges", "ce", "chaque", "cette"))
    pair = contrast(transformer.trace(checkpoint, CLEAN), CORRUPT)
    ending, word = module.Turn(3, part, this, 2.0, -1.0), module.Turn(4, every, that, 2.0, -1.0)
    assert replace(pair, turns=(ending, word)).first_turn == word
    assert replace(pair, turns=(ending,)).first_turn == ending, "a part of a word rather than nothing"


def test_another_word_and_another_alternative(tiny_checkpoint):
    trace = transformer.trace(tiny_checkpoint("translator"), CLEAN)
    pair = contrast(trace, CORRUPT)
    row = pair.turns[-1].row
    other = next(id for id in range(20, 40) if id not in (pair.turns[-1].answer, pair.turns[-1].other))
    shown = paths_view_model(trace, CORRUPT, PathsChoices(row=row, other=other))
    assert (shown.turn.row, shown.turn.other) == (row, other) and shown.step == len(pair.turns) - 1
    assert shown.effect in ("keeps", "lead"), "the model does not predict what a reader chose"
    assert effect_size(pair) == max(min(turn.clean, -turn.corrupt) for turn in pair.turns)


def test_a_map_of_heads_leaves_out_what_has_no_number():
    nan = float("nan")
    found = HeadMap.of({Head("decoder", "self", 0, 0): nan, Head("decoder", "self", 1, 2): -2.0})
    assert found.rows == (("decoder", "self", 1),) and found.values.shape == (1, 3)
    assert found.strongest == Head("decoder", "self", 1, 2) and found.number(found.strongest) == -2
    assert HeadMap.of({Head("decoder", "self", 0, 0): nan}).rows == ()
    place = module.Place("decoder", "cross_heads", 1, 3)
    assert head_of(place) == Head("decoder", "cross", 1, 3)


def test_an_edge_with_a_negative_share_works_against_the_prediction() -> None:
    names = {"sender": "head 1", "receiver": "head 2", "answer": "tea"}
    for text, against in zip(page_texts("paths"), ("works against", "joue contre"), strict=True):
        for is_estimate in (False, True):
            restores, harms = (edge_claim(share, text, is_estimate=is_estimate, **names) for share in (0.04, -0.04))
            assert against in harms and against not in restores
            assert "−" not in harms and "4" in harms, "the words say the sign"
            assert "0.3%" in edge_claim(-0.0033, text, is_estimate=is_estimate, **names), "not 0%"
