"""Benchmarks of the app: the first screen, and which sentence pairs are suitable."""

from __future__ import annotations

from pathlib import Path

import pytest

import transformer
from benchmarks import clicks, pages
from benchmarks.example_pairs import choose_pairs
from benchmarks.first_screen import table
from tests.conftest import ROOT
from ui.words.texts import model_sentences


def test_the_table_of_the_first_screen() -> None:
    *head, row = table([("attention", iter([1.0, 0.956]))])
    assert row == "| attention | 100 % | 96 % |" and len(head) == 2


def test_a_click_is_counted_by_function_and_the_second_one_makes_nothing_anew() -> None:
    clicks.measure_click("attention")  # fills what the process remembers
    calls = clicks.measure_click("attention")
    assert calls["views/attention/attention_view_model.py:attention_view_model"] == 1
    assert calls["transformer/attention_maps/attention_path.py:attention_path"] == 1
    assert not any(name.startswith(("tests/", "benchmarks/", "harness/")) for name in calls)
    assert calls.total() < 5000, "it was 6,222"


@pytest.mark.slow
def test_the_shipped_translator_solves_the_pairs_to_compare() -> None:
    found = choose_pairs(transformer.load(ROOT / "checkpoints" / "en-fr"))
    shown = model_sentences()["pair"]
    assert shown == {kind: {"first": one.first, "second": one.second} for kind, one in found.items()}


def test_a_click_keeps_a_sentence_that_is_too_long_for_the_address(checkpoints_folder: Path) -> None:
    sentence = "a cat " * 700
    app = pages.open_page("attention", {"checkpoint": "tiny-gpt", "sentence": sentence})
    app.run()
    runs = pages.click_through(app)
    for change in pages.CLICKS:
        next(runs)
        focus = app.session_state["focus"]
        assert focus.sentence == sentence and all(getattr(focus, name) == value for name, value in change.items())
