"""Long texts on a small machine, and windows of them.

``test_walk.py`` reads texts up to a model's limit on every page.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from streamlit.testing.v1 import AppTest

from tests.conftest import open_by_address
from tests.long_texts import long_sentence
from tests.pages.conftest import said
from tests.pages.fuzzing import PAGES, is_sound
from transformer.runs import recording_size
from ui.compute.store import store
from ui.shell import sentence_notes
from ui.shell.focus import _FOCUS
from ui.words.texts import common


def opened(page: str, checkpoint: str, sentence: str) -> AppTest:
    return open_by_address(page, {"checkpoint": checkpoint, "sentence": sentence}, timeout=180)


def read_all_of_it(app: AppTest) -> None:
    """Check that nothing was refused."""
    is_sound(app)
    assert not app.warning, [warning.value for warning in app.warning]


def test_the_lens_looks_at_a_long_text_piece_by_piece(tiny_checkpoint: Callable) -> None:
    app = opened("lens", "tiny-gpt", long_sentence(tiny_checkpoint("gpt"), 96))
    read_all_of_it(app)
    assert "85" in said(app) and "94" in said(app)
    read_all_of_it(app.slider(key="lens_first").set_value(3).run())
    short = opened("lens", "tiny-bert", "The cat sat.")
    assert not [slider for slider in short.slider if slider.key == "lens_first"]


@pytest.fixture
def small_memory(tiny_checkpoint, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return a text of 90 tokens on a machine on which only one of its layers fits into memory."""
    checkpoint = tiny_checkpoint("gpt")
    most = recording_size.pass_bytes(checkpoint.model, target=88)
    monkeypatch.setattr(recording_size, "ALWAYS", 0)
    for module in (recording_size, sentence_notes):
        monkeypatch.setattr(module, "allowed_bytes", lambda: most)
    store.clear()
    yield long_sentence(checkpoint, 90)
    store.clear()


@pytest.mark.sample(of=5)
@pytest.mark.parametrize("page", PAGES)
def test_a_page_shows_a_long_text_or_says_why_not(open_app, small_memory: str, page: str) -> None:
    app = open_app(page, checkpoint="tiny-gpt", sentence=small_memory)
    is_sound(app)
    advice = common("by_layer.page", length="", needed="", most="", kept="").split(". ")[-1]
    refused = any(line.value.endswith(advice) for line in app.info)
    assert not app.warning
    assert refused == sentence_notes.needs_every_layer(page)
    traces = [kept.value for (_, name), kept in store._kept.items() if name == "trace"]
    assert not (refused and traces), "nothing was recorded"
    layer = app.session_state[_FOCUS].layer if page == "attention" else 0
    streams = {f"decoder.layers.{index}.residual.in" for index in range(layer + 1)}
    inputs = [{name for name in trace.activations._lazy._kept if ".layers." in name} for trace in traces]
    assert all(kept <= streams for kept in inputs), "no layer above it has run"


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
