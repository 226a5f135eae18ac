"""Texts recorded layer by layer: pages that need every layer say so before anything is recorded."""

from __future__ import annotations

import re

import pytest

import transformer
from charts.toolkit.style import three_digits
from tests.long_texts import long_sentence
from tests.pages.conftest import said
from tests.pages.fuzzing import PAGES, is_sound
from transformer.runs import recording_size
from transformer.runs.long_activations import LongActivations
from ui.compute.loading import checkpoint_path
from ui.compute.store import store
from ui.shell import long_texts
from ui.shell.focus import _FOCUS


@pytest.fixture
def small_memory(tiny_checkpoint, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return a text of 90 tokens on a machine on which only one of its layers fits into memory."""
    checkpoint = tiny_checkpoint("gpt")
    most = recording_size.pass_bytes(checkpoint.model, target=88)
    monkeypatch.setattr(recording_size, "ALWAYS", 0)
    for module in (recording_size, long_texts):
        monkeypatch.setattr(module, "allowed_bytes", lambda: most)
    store.clear()
    yield long_sentence(checkpoint, 90)
    store.clear()


@pytest.mark.parametrize("page", sorted(PAGES))
def test_a_page_shows_a_long_text_or_says_why_not(open_app, small_memory: str, page: str) -> None:
    app = open_app(page, checkpoint="tiny-gpt", sentence=small_memory)
    is_sound(app)
    refused = any("this page needs all of them" in line.value for line in app.info)
    assert not app.warning
    assert refused == long_texts.needs_every_layer(page)
    held = [one for shelf in store._shelves.values() for one in shelf.values.items()]
    traces = [value for (_, name), (value, _) in held if name == "trace"]
    assert all(isinstance(trace.activations, LongActivations) for trace in traces)
    assert not (refused and traces), "nothing was recorded"
    layer = app.session_state[_FOCUS].layer if page == "attention" else 0
    assert all(len(trace.activations._streams) == layer + 1 for trace in traces), "no layer above it has run"


def test_a_search_moves_the_window_and_the_address_holds_it(open_app, small_memory: str) -> None:
    place = {"checkpoint": "tiny-gpt", "sentence": small_memory, "layer": 1, "head": 1}
    app = open_app("attention", **place)
    usual = app.number_input(key="attention_block").value
    word, block = ("raining", 1) if usual == 0 else ("shoe", 0)
    app.text_input(key="attention_find").set_value(word).run()
    is_sound(app)
    assert f"Occurrences of ‘{word}’: 1, none in the columns of this window." in said(app)
    app.button(key="found_after").click().run()
    (token,) = [int(place) for place in re.findall(r"in the columns of this window at (\d+)\.", said(app))]
    assert token // 64 == block and app.query_params["attention_block"] == str(block)
    again = open_app("attention", **dict(app.query_params.items()))
    assert again.number_input(key="attention_block").value == block
    app.button(key="follow found").click().run()
    is_sound(app)
    assert app.query_params["token"] == str(token)
    assert f"(token {token}) pays" in said(app)
    app.text_input(key="attention_find").set_value("zebra").run()
    assert "‘zebra’ does not occur in this text." in said(app)


def test_the_page_says_what_a_complete_recording_takes(open_app, small_memory: str) -> None:
    app = open_app("attention", checkpoint="tiny-gpt", sentence=small_memory)
    model, most = transformer.load(checkpoint_path("tiny-gpt")).model, recording_size.allowed_bytes()
    (length,) = re.findall(r"This text has (\d+) tokens\.", said(app))
    needed = recording_size.pass_bytes(model, target=int(length))
    assert f"takes {three_digits(needed / 1e9)} GB of memory, and at most {three_digits(most / 1e9)} GB" in said(app)
