"""The canvas functions inside of Streamlit: the right bytes are mounted, clicks become cells, heads and tokens."""

from __future__ import annotations

import zlib

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from charts.canvas.attention import attention_grid, attention_lines, attention_map
from charts.canvas.choices import Cell, HeadChoice
from charts.canvas.module import FOLDER, canvas_module
from charts.toolkit.payload_bytes import unpack
from transformer.runs.attention_view import AttentionView
from transformer.text.tokens import Token, TokenSequence
from ui.show import canvas


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

    from charts.canvas.attention import attention_grid, attention_lines, attention_map
    from charts.canvas.mask_editor import mask_editor
    from charts.canvas.value_map import value_map
    from tests.ui.test_attention_canvas import view
    from ui.show.canvas import bring_canvas, show_grid, show_lines, show_map, show_mask_editor

    bring_canvas()
    labels = {"row_labels": ["a", "b"], "column_labels": ["c", "d"], "row_title": "row", "column_title": "column"}
    returned = [
        show_map(attention_map(view(), head=1, selected=(2, 3)), key="map"),
        show_map(value_map(numpy.array([[1.0, -2.0], [0.0, 3.0]]), scale="diverging", **labels), key="values"),
        show_grid(attention_grid([view(layer=0), view(layer=1)], selected=(1, 0)), key="grid"),
        show_lines(attention_lines(view(), heads=[1]), key="lines"),
        show_mask_editor(mask_editor(view(), head=0, own=view().allowed), key="mask"),
    ]
    streamlit.text(f"returned {returned}")


@pytest.fixture(scope="module")
def app() -> AppTest:
    tested = AppTest.from_string("from tests.ui.test_attention_canvas import script\n\nscript()", default_timeout=30)
    return tested.run()


def components(app: AppTest) -> list:
    return [element.proto for element in app.main if element.type == "bidi_component"]


def test_each_drawing_is_mounted_with_its_own_bytes(app):
    assert not app.exception
    _, *mounted = components(app)
    assert [unpack(proto.bytes)[0]["kind"] for proto in mounted] == ["map", "map", "grid", "lines", "mask"]
    assert {proto.component_name for proto in mounted} == {"glassformer_canvas"}
    assert unpack(mounted[0].bytes)[0]["selected"] == [2, 3]


def test_nothing_is_returned_before_a_click(app):
    assert app.text[0].value == "returned [None, None, None, None, None]"


def test_styles_are_isolated_and_no_html_is_sent(app):
    for proto in components(app):
        assert proto.isolate_styles
        assert proto.html_content == ""
        assert proto.css_content == ""  # the script brings its own, packed


def test_the_script_of_the_drawings_travels_once_and_packed(app):
    brought, *pictures = components(app)
    assert brought.component_name == "glassformer_canvas_script"
    assert zlib.decompress(brought.bytes).decode() == canvas_module()
    assert len(brought.bytes) < 40_000
    for proto in pictures:
        assert len(proto.js_content) + len(proto.bytes) < 2_000  # all that a picture of these few numbers costs


@pytest.mark.parametrize("drawing", ["map", "mask", "grid", "lines", "steps"])
def test_the_script_draws_every_kind_of_picture(drawing):
    kinds = (FOLDER / "source" / "drawings" / "kinds.js").read_text(encoding="utf-8")
    assert f"{drawing}: {drawing.title()}Drawing" in kinds
    assert f"{drawing.title()}Drawing=class" in canvas_module()


@pytest.mark.parametrize("folder_text", sorted(FOLDER.rglob("*.js")), ids=lambda path: path.name)
def test_tokens_never_become_markup(folder_text):
    if folder_text.name == "pdf.bundle.js":  # a library's own code, which our part of it (in ``source``) does not call
        folder_text = FOLDER / "source" / "frame" / "pdf.js"
    code = folder_text.read_text(encoding="utf-8")
    for door in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("):
        assert door not in code


def clicking(monkeypatch, value: object) -> None:
    monkeypatch.setattr(canvas, "_PICTURE", lambda **_: {"click": value})


def test_a_click_on_the_map_is_a_cell(monkeypatch):
    clicking(monkeypatch, {"query": 2, "key": 3})
    cell = canvas.show_map(attention_map(view(), head=0), key="k")
    assert cell == Cell(query=2, key=3)


def test_a_click_on_the_grid_is_a_head(monkeypatch):
    clicking(monkeypatch, {"layer": 5, "head": 1})
    assert canvas.show_grid(attention_grid([view(layer=5)]), key="k") == HeadChoice(layer=5, head=1)


def test_a_click_on_the_lines_is_a_token(monkeypatch):
    clicking(monkeypatch, {"token": 2})
    assert canvas.show_lines(attention_lines(view()), key="k") == 2


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
def test_a_click_that_does_not_fit_the_map_is_none(monkeypatch, value):
    clicking(monkeypatch, value)
    assert canvas.show_map(attention_map(view(), head=0), key="k") is None


@pytest.mark.parametrize("value", [{"layer": 0, "head": 2}, {"layer": 1, "head": 0}, {"layer": 0}])
def test_a_click_on_a_head_that_is_gone_is_none(monkeypatch, value):
    clicking(monkeypatch, value)
    assert canvas.show_grid(attention_grid([view(layer=0)]), key="k") is None


def test_a_click_on_a_token_that_is_gone_is_none(monkeypatch):
    clicking(monkeypatch, {"token": 3})
    assert canvas.show_lines(attention_lines(view()), key="k") is None
