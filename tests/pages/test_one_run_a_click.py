"""A click on a figure changes the focus before the page runs, so the page is drawn once, not twice."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from streamlit.testing.v1 import AppTest

from tests.pages.conftest import is_fine
from tests.triggers import trigger
from ui.words.texts import page_text

SENTENCE = "The cat sat on the mat."
CELL = {"query": 1, "key": 1}
VECTORS = {"compare_more": "vectors", "second": "The dog sat on the mat."}
# page, parameters of the address, key of the figure, event, the browser's message, the expected change
CLICKS = {
    "map": ("attention", {}, "attention map", "click", CELL, {"token": 1}),  # and opens the cell: test_events.py
    "values": ("attention", {"attention_show": "values"}, "attention values", "click", CELL, {"token": 1}),
    "rollout": ("attention", {"attention_show": "rollout"}, "attention rollout", "click", CELL, {"token": 1}),
    "lines": ("attention", {"attention_show": "lines"}, "attention lines", "click", {"token": 2}, {"token": 2}),
    "words": ("attention", {"attention_section": "words"}, "attention words", "click", CELL, {}),
    "step": ("attention", {"attention_step": "2"}, "attention step products", "click", CELL, {"token": 1}),
    "heads": ("heads", {}, "heads grid", "click", {"layer": 1, "head": 1}, {"layer": 1, "head": 1}),
    "mask": ("masks", {}, "mask editor", "edit", {"cells": [0, 1], "allowed": False}, {}),
    "places": ("compare", VECTORS | {"paths_tokens": "true"}, "patching", "click", CELL, {"layer": 1, "token": 1}),
    "compared heads": ("compare", {"compare_more": "heads"}, "compare heads", "click", CELL, {"layer": 1, "head": 1}),
    "cards": ("tokens", {}, "token cards", "chosen", {"row": 0, "card": 2}, {"token": 2}),
    "swapped": ("positions", {}, "order tokens before", "chosen", {"row": 0, "card": 2}, {}),
    "layer": ("overview", {}, "model diagram", "layer", 1, {"layer": 1}),
    "written": ("decoding", {}, "stepper", "step", 2, {}),
}
AUTHOR = {"lens_view": "author"}
LEADS = {
    "block": ("overview", {}, "model diagram", "opened", "encoder.self_attention", "attention"),
    "part": ("lens", AUTHOR, "lens heads", "click", {"query": 0, "key": 1}, "attention"),
    "patched head": ("compare", VECTORS | {"paths_section": "heads"}, "patching", "click", CELL, "attention"),
}


@pytest.mark.parametrize("figure", CLICKS)
def test_a_click_is_one_run(open_app: Callable[..., AppTest], frames: list[str], figure: str) -> None:
    page, address, key, event, value, changes = CLICKS[figure]
    app = open_app(page, checkpoint="tiny-translator", sentence=SENTENCE, **address)
    is_fine(app)
    frames.clear()
    is_fine(trigger(app, key, event, value))
    assert frames == [page]
    focus = app.session_state["focus"]
    assert {name: getattr(focus, name) for name in changes} == changes


@pytest.mark.parametrize("figure", LEADS)
def test_a_click_that_leads_to_another_page_runs_that_page_only(open_app, frames, figure) -> None:
    page, address, key, event, value, leads_to = LEADS[figure]
    app = open_app(page, checkpoint="tiny-translator", sentence=SENTENCE, **address)
    is_fine(app)
    frames.clear()
    is_fine(trigger(app, key, event, value))
    assert frames == [leads_to] and app.title[0].value == page_text(leads_to).title


@pytest.mark.parametrize(
    "control, option, offered",
    [
        ("attention_heads", "one", {"layer", "head"}),
        ("decoding_section", "tree", set()),
        ("strategy", "sampling", {"layer"}),
    ],
)
def test_a_choice_of_decoding_that_changes_the_sidebar_is_one_run(open_app, frames, control, option, offered) -> None:
    app = open_app("decoding", checkpoint="tiny-translator", sentence=SENTENCE)
    frames.clear()
    is_fine(app.segmented_control(key=control).set_value(option).run())
    assert frames == ["decoding"]
    names = {(one.key or "").removeprefix("choose ") for one in app.selectbox}
    assert names & {"layer", "head"} == offered


def test_a_stroke_is_drawn_and_a_click_on_a_head_of_surgery_switches_it_off(open_app, frames) -> None:
    app = open_app("masks", checkpoint="tiny-translator", sentence=SENTENCE, mask="own")
    trigger(app, "mask editor", "edit", {"cells": [0, 1], "allowed": False})
    assert app.query_params["mask"] == "block 0-1"
    app = open_app("surgery", checkpoint="tiny-translator", sentence=SENTENCE)
    frames.clear()
    is_fine(trigger(app, "importance", "click", {"query": 0, "key": 1}))
    assert frames == ["surgery"] and app.query_params["edit"] == "zero:encoder.0.self.1"
