"""The attention canvas in Chromium: drawing, pointer, keyboard, no needless messages to the server.

Behaviour inside the browser is tested on saved figures without Streamlit; messages to Python are tested in a small app
with the same figures (``canvas_harness.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest
from playwright.sync_api import expect

from charts.toolkit import style
from tests.browser import canvas_harness
from tests.browser.scenes import FIND_CANVAS, Canvas, opened
from tests.browser.seats import Seats

pytestmark = pytest.mark.browser

SEEN = canvas_harness.view(
    canvas_harness.SENTENCE, canvas_harness.SENTENCE, layer=1, n_heads=8, kind="self", causal=True
)


@pytest.fixture(scope="module")
def map_canvas(seats: Seats, saved_scene: Callable[[str], str]) -> Iterator[Canvas]:
    """The single map, shared by tests that do not change it."""
    with opened(seats, saved_scene("map")) as canvas:
        yield canvas


def colour_of(weight: float) -> tuple[int, ...]:
    """Return the colour of a weight on the common scale of all figures."""
    place = weight * (len(style.SEQUENTIAL) - 1)
    below = min(int(place), len(style.SEQUENTIAL) - 2)
    ends = [[int(style.SEQUENTIAL[i][at : at + 2], 16) for at in (1, 3, 5)] for i in (below, below + 1)]
    return tuple(round(a + (b - a) * (place - below)) for a, b in zip(*ends, strict=True))


WIDE, NARROW = {"width": 1440}, {"width": 800, "dark": True, "ratio": 2}


@pytest.mark.parametrize(
    ("scene", "how"),
    [("cross", WIDE), ("large", NARROW), ("sorted", WIDE), ("sorted", NARROW), ("deep", NARROW), ("lines", NARROW)],
)
def test_every_drawing_paints_something(show, scene, how):
    canvas = show(scene, **how)
    assert canvas.colours() > 40


def test_a_cell_has_the_colour_of_its_weight_and_a_masked_one_is_grey(map_canvas):
    canvas = map_canvas
    canvas.hover(2, 2)
    for row, column in ((0, 0), (3, 2), (7, 5), (14, 0)):
        x, y = canvas.cell(row, column)
        shown = canvas.pixel(x, y - canvas.geometry["stepY"] * 0.36)[:3]  # above the number
        assert max(abs(a - b) for a, b in zip(shown, colour_of(SEEN.weights[2][row, column]), strict=True)) <= 4
    x, y = canvas.cell(2, 9)
    assert max(canvas.pixel(x, y)[:3]) - min(canvas.pixel(x, y)[:3]) <= 12


def test_hovering_tells_the_weight_without_asking_the_server(in_the_app):
    canvas = in_the_app("map")
    before = len(canvas.sent)
    tip = canvas.hover(*canvas.cell(7, 5))
    weight = SEEN.weights[2][7, 5]
    assert tip.startswith(f"‘·the₂’ looks at ‘·the’: {weight:.3g}")
    exact = tip.split("exactly ")[1].split(" ")[0]
    assert np.float32(exact) == weight  # every digit of the model's number
    assert "column" not in tip, "both tokens are named: no count of rows, which pages count from 0"
    assert "masked" in canvas.hover(*canvas.cell(2, 9))
    for row in range(15):
        canvas.hover(*canvas.cell(row, 3))
    row_tip = canvas.hover(canvas.geometry["x"] - 20, canvas.cell(3, 0)[1])
    assert "‘·cat’: 0.813" in row_tip and "11 masked" in row_tip
    assert len(canvas.sent) == before


def test_a_click_brings_the_cell_to_python_for_one_run(in_the_app):
    canvas = in_the_app("map")
    canvas.says("runs 0")
    canvas.page.mouse.click(*canvas.at(*canvas.cell(9, 4)))
    canvas.says("cell (9, 4)")
    canvas.says("runs 1")
    canvas.page.mouse.click(*canvas.at(*canvas.cell(5, 1)))
    canvas.says("cell (5, 1)")
    canvas.says("runs 2")


def test_a_map_that_the_page_does_nothing_with_stays_in_the_browser(in_the_app):
    canvas = in_the_app("scores")
    canvas.says("runs 0")
    canvas.sent.clear()
    canvas.hover(*canvas.cell(9, 4))
    assert canvas.page.locator("canvas").evaluate("canvas => canvas.style.cursor") != "pointer"
    canvas.page.mouse.click(*canvas.at(*canvas.cell(9, 4)))
    canvas.page.keyboard.press("Enter")
    canvas.rest()
    assert canvas.sent == []
    canvas.page.get_by_text("runs 0").click()
    canvas.page.keyboard.press("r")  # Streamlit's own key: anything sent before would have run by then
    canvas.says("runs 1")


def test_the_keyboard_does_what_the_mouse_does(in_the_app):
    canvas = in_the_app("map")
    canvas.page.locator("canvas").focus()
    before = len(canvas.sent)
    for key in ("ArrowDown", "ArrowDown", "ArrowDown", "ArrowRight", "ArrowRight"):
        canvas.page.keyboard.press(key)
    # The first key puts the cursor on the first cell.
    said = canvas.live()
    assert said.startswith(f"‘·cat’ looks at ‘·cat’: {SEEN.weights[2][2, 2]:.3g}")
    assert canvas.tip().startswith("‘·cat’ looks at ‘·cat’")
    assert len(canvas.sent) == before
    canvas.page.keyboard.press("Enter")
    canvas.says("cell (2, 2)")
    name = canvas.page.locator("canvas").get_attribute("aria-label")
    assert name.startswith("decoder self-attention, layer 1, head 2")


def test_the_table_holds_the_same_numbers_and_tokens_stay_text(map_canvas):
    canvas = map_canvas
    canvas.page.get_by_role("button", name="Show the numbers as a table").click()
    table = canvas.page.locator("table")
    expect(table.locator("tbody tr")).to_have_count(len(canvas_harness.SENTENCE))
    row = table.locator("tbody tr").nth(7).locator("td").all_inner_texts()
    assert row[5] == f"{SEEN.weights[2][7, 5]:.3g}"
    assert row[8] == "masked"
    assert table.locator("thead th").nth(12).inner_text() == "·<b>"
    assert table.locator("b").count() == 0
    canvas.page.get_by_role("button", name="Show the numbers as a table").click()
    expect(canvas.page.locator("canvas")).to_be_visible()


def test_the_picture_can_be_downloaded_at_twice_its_size(map_canvas, tmp_path):
    canvas = map_canvas
    canvas.page.get_by_role("button", name="Export this figure").click()
    with canvas.page.expect_download() as download:
        canvas.page.get_by_role("button", name="Download this figure as PNG").click()
    download.value.save_as(tmp_path / "map.png")
    header = (tmp_path / "map.png").read_bytes()[:24]
    assert header[:8] == b"\x89PNG\r\n\x1a\n"
    place = canvas.geometry  # the figure ends where the map ends, not at the edge of the window
    assert int.from_bytes(header[16:20], "big") > 2 * (place["x"] + 15 * place["stepX"])


def test_the_menu_opens_and_closes_by_keyboard(in_the_app):
    canvas = in_the_app("map")
    keyboard, export = canvas.page.keyboard, canvas.page.get_by_role("button", name="Export this figure")
    export.focus()
    keyboard.press("Enter")
    expect(canvas.page.locator("button:focus")).to_have_text("PNG")  # the menu is updated a moment later
    keyboard.press("Escape")
    expect(canvas.page.locator("button:focus")).to_have_text("Export")
    canvas.says("runs 0")


def test_the_keyboard_zooms_around_the_cursor(show):
    canvas = show("large")
    whole = canvas.geometry["stepX"]
    canvas.page.locator("canvas").focus()
    for key in ("ArrowDown", "End", "PageDown", "+", "="):
        canvas.page.keyboard.press(key)
    canvas.rest()
    assert canvas.geometry["stepX"] == pytest.approx(whole * 1.5**2, rel=0.01)
    x, y = canvas.cell(255, 255)
    box = canvas.page.locator("canvas").bounding_box()
    assert 0 < x < box["width"] and 0 < y < box["height"]  # the cursor stays visible
    assert canvas.tip().startswith("‘·w255’ looks at ‘·w255’")
    canvas.page.keyboard.press("-")
    canvas.rest()
    assert canvas.geometry["stepX"] == pytest.approx(whole * 1.5, rel=0.01)
    canvas.page.keyboard.press("0")
    canvas.rest()
    assert canvas.geometry["stepX"] == pytest.approx(whole)
    canvas.page.keyboard.press("Escape")
    assert canvas.tip() == ""


def test_the_space_bar_paints_on_a_mask(in_the_app):
    canvas = in_the_app("mask")
    canvas.page.locator("canvas").focus()
    for key in ("ArrowDown", "ArrowDown"):  # the first key puts the cursor on the first cell
        canvas.page.keyboard.press(key)
    assert canvas.live().startswith("‘·The’ looks at ‘<s>’: 0.196")
    canvas.page.keyboard.press(" ")
    assert canvas.live().startswith("‘·The’ looks at ‘<s>’: masked")
    canvas.says("stroke Stroke(cells=(Cell(query=1, key=0),), allowed=False)")


def test_a_large_map_zooms_and_pans_in_the_browser(in_the_app):
    canvas = in_the_app("large")
    before, step = len(canvas.sent), canvas.geometry["stepX"]
    for _ in range(5):
        canvas.page.get_by_role("button", name="Zoom in").click()
    canvas.rest()
    assert canvas.geometry["stepX"] == pytest.approx(step * 1.5**5, rel=0.01)
    start = canvas.geometry["x"]
    canvas.page.mouse.move(*canvas.at(500, 400))
    canvas.page.mouse.down()
    canvas.page.mouse.move(*canvas.at(560, 430), steps=5)
    canvas.page.mouse.up()
    canvas.rest()
    assert canvas.geometry["x"] == pytest.approx(start + 60, abs=2)
    canvas.page.mouse.dblclick(*canvas.at(500, 400))
    canvas.rest()
    assert canvas.geometry["stepX"] == pytest.approx(step)
    # The first click of the double click counts as a click; dragging and zooming send nothing.
    assert len(canvas.sent) <= before + 1


def test_the_grid_shows_the_head_under_the_pointer_and_returns_the_one_clicked(in_the_app):
    canvas = in_the_app("grid")
    before = len(canvas.sent)
    x, y, width, height = canvas.geometry["parts"][0][2 * 8 + 3]
    [panel] = canvas.geometry["large"]
    corner = (panel["x"] + 0.5 * panel["stepX"], panel["y"] + 0.5 * panel["stepY"])
    tip = canvas.hover(x + width * 0.02, y + height * 0.98)
    assert "layer 2, head 3" in tip and "‘</s>’ looks at ‘<s>’: 1.10·10⁻⁴" in tip
    assert "‘<s>’ looks at ‘<s>’: 1.00" in canvas.hover(x + width * 0.02, y + height * 0.02)
    assert max(abs(a - b) for a, b in zip(canvas.pixel(*corner)[:3], colour_of(1.0), strict=True)) <= 4
    assert len(canvas.sent) == before
    canvas.page.mouse.click(*canvas.at(x + width / 2, y + height / 2))
    canvas.says("head HeadChoice(layer=2, head=3)")
    canvas.page.locator("canvas").focus()
    for key in ("ArrowRight", "ArrowRight", "ArrowDown", "Enter"):  # the cursor begins at the chosen head
        canvas.page.keyboard.press(key)
    canvas.says("head HeadChoice(layer=3, head=4)")


def test_a_head_of_the_small_maps_and_of_the_large_one_is_told_to_python(in_the_app):
    canvas = in_the_app("heads 6 8", width=1280, height=1000)
    x, y, width, height = canvas.geometry["parts"][0][-1]
    canvas.page.mouse.click(*canvas.at(x + width / 2, y + height / 2))
    canvas.says("head HeadChoice(layer=5, head=7)")
    canvas.hover(2, 2)
    assert canvas.geometry["large"][-1]["tile"] == 6 * 8 - 1, "what is chosen, too"
    x, y, width, height = canvas.geometry["parts"][0][0]
    canvas.hover(x + width / 2, y + height / 2)
    canvas.hover(2, 2)
    large = canvas.geometry["large"][0]
    canvas.page.mouse.click(*canvas.at(large["x"] + large["stepX"] / 2, large["y"] + large["stepY"] / 2))
    canvas.says("head HeadChoice(layer=5, head=7)")


def test_a_head_that_is_clicked_is_outlined_before_python_answers(in_the_app):
    canvas = in_the_app("grid")
    canvas.page.evaluate("() => { WebSocket.prototype.send = () => {}; }")  # nothing was sent to Python
    x, y, width, height = canvas.geometry["parts"][0][10]
    canvas.hover(x + width / 2, y + height / 2)
    canvas.rest()
    seen = f"() => ({FIND_CANVAS}).toDataURL()"
    before = canvas.page.evaluate(seen)
    canvas.rest()
    assert canvas.page.evaluate(seen) == before
    canvas.page.mouse.click(*canvas.at(x + width / 2, y + height / 2))
    canvas.rest()
    assert canvas.page.evaluate(seen) != before
    canvas.says("runs 0")


def test_heads_are_switched_in_the_browser_and_a_token_is_returned(in_the_app):
    canvas = in_the_app("lines")
    before, colours = len(canvas.sent), canvas.colours()
    canvas.page.get_by_role("button", name="Hide all heads").click()
    canvas.rest()
    assert canvas.colours() < colours
    canvas.page.get_by_role("button", name="head 2", exact=True).click()
    expect(canvas.page.get_by_role("button", name="head 2", exact=True)).to_have_attribute("aria-pressed", "true")
    place = canvas.geometry
    tip = canvas.hover(place["leftX"] - 20, place["top"] + 6.5 * place["line"])
    assert tip.split("\n") == ["‘·mat’ looks most at", "head 2: ‘·on’ 0.419"]
    tip = canvas.hover(place["rightX"] + 20, place["top"] + 2.5 * place["line"])
    assert tip.startswith("‘·cat’ is looked at most by\nhead 2: ‘·sat’ 0.813")
    assert len(canvas.sent) == before
    canvas.page.mouse.click(*canvas.at(place["leftX"] - 20, place["top"] + 9.5 * place["line"]))
    canvas.says("token 9")
    expect(canvas.page.locator(".chip[aria-pressed=true]")).to_have_text(["2"])  # settings survive the rerun


def test_the_picture_follows_the_theme_and_the_width(show):
    canvas = show("map")
    wide = canvas.page.locator("canvas").bounding_box()["width"]
    canvas.page.set_viewport_size({"width": 700, "height": 900})
    canvas.rest()
    assert canvas.page.locator("canvas").bounding_box()["width"] < wide - 300
    assert canvas.colours() > 40
    canvas.page.emulate_media(color_scheme="dark")
    canvas.rest()
    x, y = canvas.cell(2, 9)
    assert max(canvas.pixel(x, y)[:3]) < 120  # a masked cell is now dark grey
    tip = canvas.hover(*canvas.cell(7, 5))
    assert tip.startswith("‘·the₂’ looks at ‘·the’")
