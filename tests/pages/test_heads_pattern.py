"""Heads, the section in which a pattern is painted: the editor, and all heads ranked by it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import transformer
from charts.toolkit.numbers import percent
from charts.toolkit.payload_bytes import mask_bits, unpack
from tests.pages.conftest import is_fine, said
from tests.triggers import trigger
from transformer.heads.painted_pattern import known_patterns, pattern_scores
from ui.words.texts import page_text

TEXT = page_text("heads")
SENTENCE = "My dog is big, my cat is small."


def test_a_stroke_changes_the_pattern_and_the_order_of_the_heads(open_app: Callable, tiny_checkpoint: Callable) -> None:
    trace = transformer.trace(tiny_checkpoint("gpt"), SENTENCE)
    views = [trace.attention("decoder", layer, "self") for layer in range(trace.n_layers("decoder"))]
    app = open_app(
        "heads", checkpoint="tiny-gpt", sentence=SENTENCE, heads_section="pattern", heads_pattern="same", layer="1"
    )
    pattern = known_patterns(views)["same"]
    for changed in (False, True):
        if changed:
            pattern[4, :3] = True
            is_fine(trigger(app, "pattern editor", "edit", {"cells": [4, 0, 4, 1, 4, 2], "allowed": True}))
        is_fine(app)
        (sent,) = [one.proto.bytes for one in app.get("bidi_component") if one.key == "pattern editor"]
        np.testing.assert_array_equal(unpack(sent)[1]["painted"], mask_bits(pattern))
        expected = pattern_scores(views, pattern)
        table = next(one.value for one in app.dataframe if TEXT["pattern_score"] in one.value)
        assert [*table[TEXT["pattern_score"]]] == pytest.approx([one.score for one in expected])
        best = expected[0]
        assert f"**{best.layer}.{best.head}** puts most on this pattern: **{percent(best.score)}**" in said(app)
    app.button(key="pattern reset").click()
    is_fine(app.run())
    assert "heads_painted" not in app.query_params


def test_an_empty_pattern_asks_for_a_stroke(open_app: Callable) -> None:
    app = open_app("heads", checkpoint="tiny-translator", heads_section="pattern", heads_pattern="blank")
    is_fine(app)
    assert [info.value for info in app.info] == [TEXT["pattern_none"]]
