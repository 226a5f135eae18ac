"""Maps in Chromium: pointer, keyboard, zoom and the painted mask; what a click opens.

Marks, hits, words and files of every drawing are tested in node (tests/drawings), clicks in Python (tests/pages).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Browser, Page, expect

import transformer
from charts import notebook
from charts.canvas.attention_maps import attention_map
from charts.toolkit.shades import colour_at
from charts.toolkit.style import SEQUENTIAL
from tests.browser.conftest import PROJECTOR, asked, eventually, is_open, key, path, settle, title_of
from tests.browser.drawing import Drawing
from tests.browser.offline import opened_offline
from tests.browser.seats import Seat
from tests.conftest import ROOT
from tests.drawings.record import view
from ui.words.texts import page_text

pytestmark = pytest.mark.browser
SENTENCE, TARGET = "The old man told us a story.", "Le vieil homme."
PLACE = f"sentence={SENTENCE}&target={TARGET}&stack=decoder&kind=cross&layer=1&head=1&token=1"
NUMBERED = [f"·w{i}" for i in range(256)]
_HOLD_SENDING = """() => {
    const send = WebSocket.prototype.send, held = [];
    WebSocket.prototype.send = function (data) { held.push(() => send.call(this, data)); };
    window.sendAll = () => {
        WebSocket.prototype.send = send;
        held.forEach((one) => one());
    };
}"""


@pytest.fixture(scope="module")
def weights() -> np.ndarray:
    """The weights that the opened page must show."""
    trace = transformer.trace(transformer.load(ROOT / "checkpoints" / "en-fr"), SENTENCE, TARGET)
    return trace.attention("decoder", 1, "cross").weights[1]


def test_a_cell_tells_its_weight_and_opens_its_arithmetic_which_its_address_brings_back(
    sit: Callable[..., Seat], weights: np.ndarray
) -> None:
    seat = sit(f"attention?{PLACE}", **PROJECTOR)
    page, drawing, arithmetic = seat.page, Drawing(seat.page), key(seat.page, "attention-arithmetic")
    drawing.painted()
    expect(page.locator(".skip-to-figure")).to_be_attached()
    page.keyboard.press("Tab")  # from the keyboard, the figure is reached first
    expect(page.locator(".skip-to-figure")).to_be_focused()
    page.keyboard.press("Enter")
    expect(drawing.canvas).to_be_focused()

    seat.forget_frames()
    for row, column in ((2, 3), (1, 1)):
        (exact,) = re.findall(r"exactly ([\d.e−-]+)", drawing.hover(drawing.cell(row, column)))
        assert np.float32(exact.replace("−", "-")) == weights[row, column]
    drawing.press("ArrowDown", "ArrowRight")
    assert seat.sent == [], "hovering and moving ask the server for nothing"

    _, before = drawing.painted()
    drawing.click(drawing.cell(2, 3))
    assert eventually(page, lambda: (asked(page).get("token", "0"), asked(page).get("attention_key")), ("2", "3"))
    settle(page)
    expect(arithmetic).to_contain_text(f"{float(weights[2, 3]):.9g}")
    expect(arithmetic).to_be_focused()
    box = arithmetic.bounding_box()
    assert drawing.painted()[1] == before and box["x"] >= before["x"] + before["width"]
    assert box["y"] >= 0 and box["y"] + box["height"] <= PROJECTOR["height"], "both are in the window"
    drawing.press("ArrowLeft", "Enter")
    assert eventually(page, lambda: asked(page)["attention_key"] != "3"), "the keyboard does what the mouse does"
    settle(page)
    row, column = int(asked(page).get("token", "0")), int(asked(page)["attention_key"])

    page.reload()
    settle(page)
    expect(arithmetic).to_contain_text(f"{float(weights[row, column]):.9g}")
    expect(arithmetic).not_to_be_focused()  # opening an address moves no focus
    light = drawing.pixels()
    page.emulate_media(color_scheme="dark")
    assert eventually(page, lambda: drawing.pixels() != light)


def test_a_word_has_the_colour_of_its_weight_and_a_click_follows_it(
    visit: Callable[..., Page], weights: np.ndarray
) -> None:
    page = visit(f"attention?{PLACE}", **PROJECTOR)
    words = page.locator(".shaded .word")
    expect(words).to_have_count(weights.shape[1])
    ground = words.nth(3).evaluate("node => getComputedStyle(node).backgroundColor")
    wanted = colour_at(float(weights[1, 3]), colours=SEQUENTIAL)
    assert ground == "rgb({}, {}, {})".format(*(int(wanted[at : at + 2], 16) for at in (1, 3, 5)))
    chips = page.locator(".strip button.token")
    chips.nth(3).click()
    page.wait_for_url(re.compile("token=3"))
    expect(chips.nth(3)).to_have_attribute("aria-pressed", "true")
    chips.nth(3).focus()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile("token=4"))


def test_a_head_among_the_small_maps_is_large_at_once_and_opens_its_page(visit: Callable[..., Page]) -> None:
    page = visit(f"heads?{PLACE}")
    drawing = Drawing(page)
    x, y, width, height = drawing.state["parts"][0][8 * 2 + 3]
    before = drawing.pixels()
    page.evaluate(_HOLD_SENDING)
    drawing.click((x + width / 2, y + height / 2))  # it is outlined before Python answers
    assert eventually(page, lambda: drawing.pixels() != before)
    page.evaluate("() => window.sendAll()")
    assert eventually(page, lambda: (asked(page).get("layer"), asked(page).get("head")), ("2", "3"))
    settle(page)
    page.get_by_role("button", name=page_text("heads")["open"]).click()
    is_open(page, title_of("attention"))
    assert (asked(page)["layer"], asked(page)["head"]) == ("2", "3") and path(page) == "/attention"


def test_a_large_map_zooms_and_pans_by_pointer_and_keyboard(visit: Callable[..., Page], tmp_path: Path) -> None:
    large = attention_map(view(NUMBERED, NUMBERED, layer=0, n_heads=1, kind="self", causal=True), head=0)
    page = visit(large.save(tmp_path / "large.html").as_uri())
    drawing = Drawing(page)
    step = drawing.state["stepX"]
    drawing.press("ArrowDown", "End", "PageDown", "+", "=")
    assert drawing.state["stepX"] == pytest.approx(step * 1.5**2, rel=0.01)
    x, y = drawing.cell(255, 255)
    _, box = drawing.painted()
    assert 0 < x < box["width"] and 0 < y < box["height"], "the cursor stays visible"
    drawing.press("-")
    assert drawing.state["stepX"] == pytest.approx(step * 1.5, rel=0.01)
    begin = drawing.state["x"]
    drawing.drag((500, 400), (560, 430))
    assert drawing.state["x"] == pytest.approx(begin + 60, abs=2)
    drawing.canvas.dblclick(position={"x": 500, "y": 400})
    assert drawing.state["stepX"] == pytest.approx(step)
    page.set_viewport_size({"width": 700, "height": 900})
    assert eventually(page, lambda: drawing.painted()[1]["width"] <= 700)


def test_a_mask_is_painted_by_drag_click_and_keyboard_and_undone(visit: Callable[..., Page]) -> None:
    address = f"masks?sentence={SENTENCE}&stack=decoder&target={TARGET}&mask=own"
    page = visit(address)
    drawing, undo = Drawing(key(page, "mask-editor")), key(page, "mask-undo").get_by_role("button")

    def painted() -> int:
        return len(asked(page).get("painted", "").split())

    expect(undo).to_be_disabled()
    strokes = []
    for start, end in (((3, 0), (5, 0)), ((0, 2), (0, 2))):  # a click allows what was blocked: a later token
        drawing.drag(drawing.cell(*start), drawing.cell(*end))
        expect(undo).to_be_enabled()
        settle(page)
        strokes.append(page.url)
    drawing.press("ArrowDown", "Enter")  # the cursor appears on the first cell, the only one of its row
    assert eventually(page, lambda: page.url != strokes[-1])
    settle(page)
    for wanted in (strokes[1], strokes[0]):
        undo.click()
        settle(page)
        assert page.url == wanted
    undo.click()
    settle(page)
    expect(undo).to_be_disabled()


def test_maps_in_a_notebook(chromium: Browser, tmp_path: Path) -> None:
    words = [f"·w{i}" for i in range(15)]
    seen = view(words, words, layer=1, n_heads=8, kind="self", causal=True)
    figures = (seen, notebook.attention_map(seen, head=2), notebook.attention_lines(seen, heads=[2]))
    file = tmp_path / "notebook.html"
    outputs = "".join(figure._repr_html_() for figure in figures)
    file.write_text(f"<!doctype html><meta charset=utf-8>{outputs}", encoding="utf-8")
    with opened_offline(chromium, file) as page:
        for number, frame in enumerate(page.frames[1:]):
            element = page.locator("iframe").nth(number)
            assert element.get_attribute("sandbox") == "allow-scripts allow-downloads"
            element.scroll_into_view_if_needed()
            frame.locator("canvas[data-geometry]").wait_for()
            long, room = frame.evaluate("[document.documentElement.scrollHeight, innerHeight]")
            assert long <= room + 1, f"{figures[number]} needs {long} pixels and has {room}"
        heads, head = Drawing(page.frames[1]), Drawing(page.frames[2])
        page.locator("iframe").first.scroll_into_view_if_needed()  # a frame out of sight draws nothing
        assert len(heads.state["parts"][0]) == 8
        x, y, width, height = heads.state["parts"][0][2]
        heads.click((x + width / 2, y + height / 2))
        for number, (drawing, inside) in enumerate(((heads, ("large", 0)), (head, ()))):
            page.locator("iframe").nth(number).scroll_into_view_if_needed()
            assert f"{seen.weights[2][7, 5]:.3g}" in drawing.hover(drawing.cell(7, 5, *inside))
