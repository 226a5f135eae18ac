"""A sentence is tokenized and checked once per trace, also if the model generates its output first."""

from __future__ import annotations

import pytest

import transformer
from transformer.runs import inputs


@pytest.mark.parametrize("kind", ["translator", "gpt", "bert", "sentiment"])
def test_a_trace_cuts_its_sentence_once(tiny_checkpoint, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    checkpoint, cut = tiny_checkpoint(kind), []
    ids_of = inputs._ids
    monkeypatch.setattr(inputs, "_ids", lambda *asked: cut.append(asked[1]) or ids_of(*asked))
    transformer.trace(checkpoint, "The old man told us a story.", source_pads=1 if kind == "translator" else 0)
    assert cut == ["The old man told us a story."]
