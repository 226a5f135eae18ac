"""Examples where heads and units are most active, on Attention and Feed-forward, equal the library's."""

from __future__ import annotations

import re
from collections.abc import Callable
from types import SimpleNamespace

import numpy as np
import pytest
import streamlit as st

from tests.pages.conftest import codes, is_fine, said
from transformer.heads.firing_examples import head_firings, unit_firings
from transformer.runs.head_places import Head
from transformer.text.sentence_files import read_sentences
from ui.lab import firing_list as listed
from ui.words.texts import common, page_text

TEXT, UNITS = page_text("attention"), page_text("feed_forward")
SECTION = {"attention_section": TEXT["section_fires"]}
OWN = ("own.txt", b"The dog sees the cat.\n\nA bird sings.\n", "text/plain")


def table(app):
    return next(one.value for one in app.dataframe if common("fires.context") in one.value)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "stack", "kind"), [("translator", "decoder", "cross"), ("gpt", "decoder", "self")])
def test_largest_weights_and_own_sentences(
    open_app: Callable, tiny_checkpoint: Callable, monkeypatch: pytest.MonkeyPatch, name: str, stack: str, kind: str
):
    app = open_app("attention", checkpoint=f"tiny-{name}", stack=stack, kind=kind, layer="1", head="1", **SECTION)
    is_fine(app)
    checkpoint, head = tiny_checkpoint(name), Head(stack, kind, 1, 1)
    firings = head_firings(checkpoint, read_sentences())[head]
    np.testing.assert_allclose(table(app)[common("fires.weight")], [one.value for one in firings], atol=1e-5)
    assert [*table(app)[common("fires.key")]] == [one.read[one.key].display for one in firings]
    app.file_uploader(key="sentence list file").set_value([OWN])
    is_fine(app.run())
    assert "2 sentences (own.txt)" in said(app)
    own = head_firings(checkpoint, ["The dog sees the cat.", "A bird sings."])[head]
    np.testing.assert_allclose(table(app)[common("fires.weight")], [one.value for one in own], atol=1e-5)
    monkeypatch.setenv("GLASSFORMER_SENTENCES", "1")  # a limit is read when it is needed
    assert common("sentences.cut", most=1, count=2) in said(app.run())
    app.file_uploader(key="sentence list file").set_value([("own.txt", b"\xff\xfe\x00", "text/plain")])
    assert [warning.value for warning in app.run().warning], "what is not text is refused in a sentence"


def test_a_public_server_takes_no_file(open_app: Callable, public_server: None) -> None:
    app = open_app("attention", checkpoint="tiny-bert", **SECTION)
    is_fine(app)
    assert not app.file_uploader and len(table(app))


def test_units(open_app: Callable, tiny_checkpoint: Callable) -> None:
    app = open_app("feed_forward", checkpoint="tiny-sentiment", **{"feed-forward view": UNITS["tab"]["fires"]})
    is_fine(app)
    checkpoint = tiny_checkpoint("sentiment")
    unit = app.segmented_control(key="unit").value
    code = next(one for one in codes(app) if "unit_firings(checkpoint" in one)
    layer = int(re.search(r"unit_firings\(.*'encoder', (\d+)", code)[1])
    firings = unit_firings(checkpoint, read_sentences(), "encoder", layer, [int(unit)])[int(unit)]
    np.testing.assert_allclose(table(app)[common("fires.hidden")], [one.value for one in firings], atol=1e-5)


def test_context_names_query_and_key(tiny_checkpoint: Callable) -> None:
    found = head_firings(tiny_checkpoint("translator"), ["The dog sees the cat."])
    inside = found[Head("encoder", "self", 0, 0)][0]
    both = listed.in_context(inside)
    assert f"[{inside.asked[inside.query].text.strip()}]" in both
    assert inside.key == inside.query or f"«{inside.read[inside.key].text.strip()}»" in both
    across = listed.in_context(found[Head("decoder", "cross", 0, 0)][0])
    assert " ← " in across and across.endswith(".")


def test_a_chosen_row_is_opened(tiny_checkpoint: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    firings = head_firings(tiny_checkpoint("gpt"), ["The dog sees the cat."])[Head("decoder", "self", 0, 0)]
    opened = []
    for rows in ([0], [], [7]):  # a row is chosen, none is, then a row of a list that is gone
        state = {f"data {listed._TABLE}": SimpleNamespace(selection=SimpleNamespace(rows=rows))}
        monkeypatch.setattr(st, "session_state", state)
        listed._open_chosen(firings, opened.append)
    assert opened == [firings[0]]
