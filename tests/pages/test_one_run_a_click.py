"""A click on a figure changes the focus before the page runs, so the page is drawn once, not twice."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from streamlit.testing.v1 import AppTest

from tests.pages.conftest import is_fine
from tests.triggers import trigger
from ui.page import page as frame
from ui.words.texts import page_text

SENTENCE = "The cat sat on the mat."
CELL = {"query": 1, "key": 1}
SECOND = {"second": "The dog sat on the mat."}
SHOWN = {name: page_text("attention")[f"show_{name}"] for name in ("lines", "values", "rollout")}
# page, parameters of the address, key of the figure, event, the browser's message, the expected change
CLICKS = {
    "map": ("attention", {}, "attention map", "click", CELL, {"token": 1}),
    "values": ("attention", {"attention_show": SHOWN["values"]}, "attention values", "click", CELL, {"token": 1}),
    "rollout": ("attention", {"attention_show": SHOWN["rollout"]}, "attention rollout", "click", CELL, {"token": 1}),
    "lines": ("attention", {"attention_show": SHOWN["lines"]}, "attention lines", "click", {"token": 2}, {"token": 2}),
    "words": ("attention", {"attention_section": "words"}, "attention words", "click", CELL, {}),
    "step": ("attention", {"attention_step": "2"}, "attention step products", "click", CELL, {"token": 1}),
    "heads": ("heads", {}, "heads grid", "click", {"layer": 1, "head": 1}, {"layer": 1, "head": 1}),
    "mask": ("masks", {}, "mask editor", "edit", {"cells": [0, 1], "allowed": False}, {}),
    "places": (
        "compare",
        {"compare_more": "vectors", "paths_tokens": "true"} | SECOND,
        "patching",
        "click",
        CELL,
        {"layer": 1, "token": 1},
    ),
    "compared heads": ("compare", {"compare_more": "heads"}, "compare heads", "click", CELL, {"layer": 1, "head": 1}),
    "cards": ("tokens", {}, "token cards", "chosen", {"row": 0, "card": 2}, {"token": 2}),
    "swapped": (
        "positions",
        {"positions_section": "order"},
        "order tokens before",
        "chosen",
        {"row": 0, "card": 2},
        {},
    ),
    "layer": ("overview", {}, "model diagram", "layer", 1, {"layer": 1}),
    "written": ("decoding", {}, "stepper", "step", 2, {}),
}
AUTHOR = {"lens_view": page_text("lens")["view_author"]}
LEADS = {
    "block": ("overview", {}, "model diagram", "opened", "encoder.self_attention", "attention"),
    "part": (
        "lens",
        AUTHOR,
        "lens heads",
        "click",
        {"query": 0, "key": 1},
        "attention",
    ),
    "patched head": (
        "compare",
        {"compare_more": "vectors", "paths_section": "heads"} | SECOND,
        "patching",
        "click",
        CELL,
        "attention",
    ),
}


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Record the names of the pages whose frame was drawn, once per run."""
    names, draw = [], frame._draw_frame
    monkeypatch.setattr(frame, "_draw_frame", lambda p, *room, **how: names.append(p.name) or draw(p, *room, **how))
    return names


@pytest.mark.parametrize("figure", CLICKS)
def test_a_click_is_one_run(open_app: Callable[..., AppTest], drawn: list[str], figure: str) -> None:
    page, address, key, event, value, changes = CLICKS[figure]
    app = open_app(page, checkpoint="tiny-translator", sentence=SENTENCE, **address)
    is_fine(app)
    drawn.clear()
    is_fine(trigger(app, key, event, value))
    assert drawn == [page]
    focus = app.session_state["focus"]
    assert {name: getattr(focus, name) for name in changes} == changes


@pytest.mark.parametrize("figure", LEADS)
def test_a_click_that_leads_to_another_page_runs_that_page_only(
    open_app: Callable[..., AppTest], drawn: list[str], figure: str
) -> None:
    page, address, key, event, value, leads_to = LEADS[figure]
    app = open_app(page, checkpoint="tiny-translator", sentence=SENTENCE, **address)
    is_fine(app)
    drawn.clear()
    is_fine(trigger(app, key, event, value))
    assert drawn == [leads_to] and app.title[0].value == page_text(leads_to).title


@pytest.mark.parametrize(
    "control, option, offered",
    [
        ("attention_heads", "one", {"layer", "head"}),
        ("decoding_section", "tree", set()),
        ("strategy", "sampling", {"layer"}),
    ],
)
def test_a_choice_of_decoding_that_changes_the_sidebar_is_one_run(
    open_app: Callable[..., AppTest], drawn: list[str], control: str, option: str, offered: set[str]
) -> None:
    app = open_app("decoding", checkpoint="tiny-translator", sentence=SENTENCE)
    drawn.clear()
    is_fine(app.segmented_control(key=control).set_value(option).run())
    assert drawn == ["decoding"]
    names = {(one.key or "").removeprefix("choose ") for one in app.selectbox}
    assert names & {"layer", "head"} == offered


def test_a_click_on_the_map_opens_the_arithmetic_of_its_cell(open_app: Callable[..., AppTest]) -> None:
    app = open_app("attention", checkpoint="tiny-translator", sentence=SENTENCE)
    is_fine(trigger(app, "attention map", "click", {"query": 2, "key": 1}))
    key = app.selectbox(key="attention_key")
    assert key.value == 1 and app.session_state["focus"].token == 2


def test_a_stroke_is_drawn_and_a_click_on_a_head_of_surgery_switches_it_off(
    open_app: Callable[..., AppTest], drawn: list[str]
) -> None:
    app = open_app("masks", checkpoint="tiny-translator", sentence=SENTENCE, mask="own")
    trigger(app, "mask editor", "edit", {"cells": [0, 1], "allowed": False})
    assert app.query_params["mask"] == "block 0-1"
    app = open_app("surgery", checkpoint="tiny-translator", sentence=SENTENCE)
    drawn.clear()
    is_fine(trigger(app, "importance", "click", {"query": 0, "key": 1}))
    assert drawn == ["surgery"] and app.query_params["edit"] == "zero:encoder.0.self.1"
