"""Texts recorded layer by layer: pages that need every layer say so before anything is recorded."""

from __future__ import annotations

import pytest

from tests.long_texts import long_sentence
from tests.pages.fuzzing import PAGES, is_sound
from transformer.runs import recording_size
from transformer.runs.long_activations import LongActivations
from ui.compute.store import store
from ui.shell import long_texts


@pytest.fixture
def small_memory(tiny_checkpoint, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return a text of 90 tokens on a machine on which only one of its layers fits into memory."""
    checkpoint = tiny_checkpoint("gpt")
    most = recording_size.pass_bytes(checkpoint.model, target=60)
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
    assert refused == long_texts.needs_every_layer(page)
    held = [one for shelf in store._shelves.values() for one in shelf.values.items()]
    traces = [value for (_, name), (value, _) in held if name == "trace"]
    assert all(isinstance(trace.activations, LongActivations) for trace in traces)
    assert not (refused and traces), "nothing was recorded"
