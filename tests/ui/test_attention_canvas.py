"""Canvas functions inside Streamlit: the right bytes are mounted, and clicks become cells and tokens."""

from __future__ import annotations

import zlib

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from charts.canvas.attention_maps import HeadChoice
from charts.canvas.attention_overview import AnyHead
from charts.canvas.module import FOLDER, canvas_module
from charts.toolkit.payload_bytes import unpack
from tests.triggers import trigger
from transformer.runs.attention_view import AttentionView
from transformer.text.tokens import Token, TokenSequence
from ui.show import drawings


def view(rows: int = 3, columns: int = 4, *, layer: int = 0, kind: str = "cross") -> AttentionView:
    def tokens(count: int) -> TokenSequence:
        return TokenSequence(tuple(Token(index=i, id=i, text=f" w{i}", display=f"·w{i}") for i in range(count)))

    return AttentionView(
        name="decoder.layers.0.cross_attention",
        stack="decoder",
        layer=layer,
        kind=kind,
        weights=np.full((2, rows, columns), 1 / columns, dtype=np.float32),
        allowed=np.ones((rows, columns), dtype=bool),
        scores=np.zeros((2, rows, columns), dtype=np.float32),
        query=tokens(rows),
        key=tokens(columns),
    )


def script() -> None:
    import numpy
    import streamlit

    from charts.canvas.attention_maps import attention_grid, attention_lines, attention_map
    from charts.canvas.attention_overview import attention_overview
    from charts.canvas.mask_editor import mask_editor
    from charts.canvas.value_map import value_map
    from tests.ui.test_attention_canvas import view
    from ui.shell.frame import bring_canvas
    from ui.show.drawings import show_grid, show_lines, show_map, show_mask_editor, show_overview

    bring_canvas()
    labels = {"row_labels": ["a", "b"], "column_labels": ["c", "d"], "row_title": "row", "column_title": "column"}
    said = streamlit.session_state.setdefault("said", [])

    show_map(attention_map(view(), head=1, selected=(2, 3)), key="map", on_click=said.append)
    values = numpy.array([[1.0, -2.0], [0.0, 3.0]])
    show_map(value_map(values, scale="diverging", **labels), key="values")
    grid = attention_grid([view(layer=0), view(layer=1)], selected=(1, 0))
    show_grid(grid, key="grid", on_click=said.append)
    show_lines(attention_lines(view(), heads=[1]), key="lines", on_click=said.append)
    show_mask_editor(mask_editor(view(), head=0, own=view().allowed), key="mask", on_paint=said.append)
    every = attention_overview([[view(layer=0)]])
    show_overview(every, key="every", on_click=said.append)
    streamlit.session_state["runs"] = streamlit.session_state.get("runs", 0) + 1


@pytest.fixture(scope="module")
def app() -> AppTest:
    tested = AppTest.from_string("from tests.ui.test_attention_canvas import script\n\nscript()")
    return tested.run()


def components(app: AppTest) -> list:
    return [element.proto for element in app.main if element.type == "bidi_component"]


def test_each_drawing_is_mounted_with_its_own_bytes(app):
    assert not app.exception
    _, *mounted = components(app)
    assert [unpack(proto.bytes)[0]["kind"] for proto in mounted] == ["map", "map", "grid", "lines", "mask", "overview"]
    assert {proto.component_name for proto in mounted} == {"glassformer_canvas"}
    assert unpack(mounted[0].bytes)[0]["selected"] == [2, 3]


def test_nothing_is_said_before_a_click(app):
    assert app.session_state["said"] == [] and app.session_state["runs"] == 1


def test_a_map_without_anything_to_do_cannot_be_clicked(app):
    _, first, second, *_more = components(app)
    assert "still" not in unpack(first.bytes)[0] and unpack(second.bytes)[0]["still"] is True


CLICKS = {
    "map": ("click", {"query": 2, "key": 3}, (2, 3)),
    "grid": ("click", {"layer": 1, "head": 1}, {"layer": 1, "head": 1}),
    "lines": ("click", {"token": 2}, 2),
    "mask": ("edit", {"cells": [0, 1, 2, 3], "allowed": False}, (((0, 1), (2, 3)), False)),
    "every": (
        "click",
        {"stack": "decoder", "attention": "cross", "layer": 0, "head": 1},
        {"stack": "decoder", "kind": "cross", "layer": 0, "head": 1},
    ),
}


@pytest.mark.parametrize("key", CLICKS)
def test_a_click_is_told_before_the_one_run_that_it_causes(key):
    app = AppTest.from_string("from tests.ui.test_attention_canvas import script\n\nscript()").run()
    event, value, choice = CLICKS[key]
    trigger(app, key, event, value)
    assert not app.exception
    assert app.session_state["said"] == [choice] and app.session_state["runs"] == 2
    trigger(app, key, event, {"query": 99, "key": "x", "layer": 99, "head": -1, "token": 99, "cells": 7})
    assert not app.exception
    assert app.session_state["said"] == [choice] and app.session_state["runs"] == 3


def test_styles_are_isolated_and_no_html_is_sent(app):
    for proto in components(app):
        assert proto.isolate_styles
        assert proto.html_content == ""
        assert proto.css_content == ""  # the script contains its own, packed


def test_the_script_of_the_drawings_travels_once_and_packed(app):
    brought, *pictures = components(app)
    assert brought.component_name == "glassformer_canvas_script"
    assert zlib.decompress(brought.bytes).decode() == canvas_module()
    assert len(brought.bytes) < 70_000, "the living picture is half of it"
    for proto in pictures:
        assert len(proto.js_content) + len(proto.bytes) < 3_000  # total cost of a figure with these few numbers


@pytest.mark.parametrize("folder_text", sorted(FOLDER.rglob("*.js")), ids=lambda path: path.name)
def test_tokens_never_become_markup(folder_text):
    if folder_text.name == "pdf.bundle.js":  # library code that our part (in ``source``) does not call
        folder_text = FOLDER / "source" / "scene" / "pdf.js"
    code = folder_text.read_text(encoding="utf-8")
    for door in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("):
        assert door not in code


NO_CELLS = [
    None,
    7,
    "x",
    [],
    {},
    {"query": 3, "key": 0},
    {"query": 0, "key": 4},
    {"query": -1, "key": 0},
    {"query": True, "key": 0},
    {"query": 0.5, "key": 0},
    {"query": "0", "key": 0},
]


@pytest.mark.parametrize("value", NO_CELLS, ids=repr)
def test_a_click_that_does_not_fit_the_map_is_none(value):
    assert drawings.read_cell(value, (3, 4)) is None


@pytest.mark.parametrize("value", [None, {"layer": 0, "head": 2}, {"layer": 1, "head": 0}, {"layer": 0}])
def test_a_click_on_a_head_that_is_gone_is_none(value):
    shown = {HeadChoice(0, 0), HeadChoice(0, 1)}
    assert drawings.read_head(value, shown) is None
    assert drawings.read_head({"layer": 0, "head": 1}, shown) == {"layer": 0, "head": 1}


@pytest.mark.parametrize("stack", ["encoder", None, [], {}, 7])
def test_a_click_on_an_attention_that_is_gone_is_none(stack):
    value = {"stack": stack, "attention": "self", "layer": 0, "head": 1}
    assert drawings.read_any_head(value, {AnyHead("decoder", "self", 0, 1)}) is None


def test_a_click_on_a_token_that_is_gone_is_none():
    assert drawings.read_token({"token": 3}, 3) is None


@pytest.mark.parametrize("key", ["map", "grid"])
def test_what_is_said_of_a_picture_that_has_been_left_changes_nothing(key):
    drawings._hear(key, "click", lambda value: value, lambda *_: pytest.fail())  # outside of any run there is no state
