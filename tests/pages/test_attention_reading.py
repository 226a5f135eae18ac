"""Attention, the section in which a map is read another way: whole words, without sinks."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from streamlit.testing.v1 import AppTest

import transformer
from charts.toolkit.numbers import percent
from charts.toolkit.payload_bytes import unpack
from tests.pages.conftest import is_fine, said
from transformer.attention_maps.token_groups import sink_keys, without_keys
from ui.words.texts import page_text

TEXT = page_text("attention")
SENTENCE = "My dog is big, the cat is small."
ADDRESS = {"attention_section": "reading", "attention_whole_words": "false", "layer": "1", "head": "1", "token": "3"}


def drawn(app: AppTest, key: str) -> np.ndarray:
    (sent,) = [one.proto.bytes for one in app.get("bidi_component") if one.key == key]
    return unpack(sent)[1]["values"]


def test_the_sinks_are_left_out_with_one_button_and_said(open_app: Callable, tiny_checkpoint: Callable) -> None:
    view = transformer.trace(tiny_checkpoint("gpt"), SENTENCE).attention("decoder", 1, "self")
    app = open_app("attention", checkpoint="tiny-gpt", sentence=SENTENCE, **ADDRESS)
    is_fine(app)
    np.testing.assert_allclose(drawn(app, "attention words"), view.weights[1], atol=1e-6)
    app.button(key="attention leave out sinks").click()
    is_fine(app.run())
    sinks = sink_keys(view)
    assert app.multiselect(key="attention_left_out").value == list(sinks)
    np.testing.assert_allclose(drawn(app, "attention words"), without_keys(view, sinks).weights[1], atol=1e-6)
    gone = view.weights[1][:, list(sinks)].sum(axis=-1)
    assert f"had {percent(float(gone.mean()))} of a row on average, and {percent(float(gone[3]))} of the row" in said(
        app
    )
