"""The attention canvas in Chromium: drawing, pointer, keyboard, no needless messages to the server.

Behaviour inside the browser is tested on saved figures without Streamlit; messages to Python are tested in a small app
with the same figures (``canvas_harness.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise

import numpy as np
import pytest
from playwright.sync_api import expect

from charts.toolkit import style
from tests.browser import canvas_harness
from tests.browser.conftest import eventually
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


def test_the_contrast_follows_the_value_under_the_pointer_while_shift_is_held(show):
    canvas = show("follows")
    weights = SEEN.weights[2]
    small = next(
        (row, column) for row in range(8, 14) for column in range(2, row - 1) if 0.002 < weights[row, column] < 0.05
    )
    largest = tuple(int(place) for place in np.unravel_index(weights[8:14].argmax(), weights[8:14].shape))
    others = [small, (largest[0] + 8, largest[1]), (12, 3), (0, 0)]

    def shown(row: int, column: int) -> tuple[int, ...]:
        x, y = canvas.cell(row, column)
        return canvas.pixel(x - canvas.geometry["stepX"] * 0.3, y - canvas.geometry["stepY"] * 0.3)[:3]

    def alike(colour: tuple[int, ...], share: float) -> bool:
        return max(abs(a - b) for a, b in zip(colour, colour_of(share), strict=True)) <= 5

    canvas.hover(2, 2)
    assert all(alike(shown(*cell), weights[cell]) for cell in others), "the scale is fixed to 0…1"
    assert "0.0" in canvas.hover(*canvas.cell(*small))
    assert all(alike(shown(*cell), weights[cell]) for cell in others), "pointing alone changes no colour"
    canvas.page.keyboard.down("Shift")
    half = np.arccosh(1 / (2 * weights[small]))
    start = weights[small] / np.sinh(half)
    for cell in others:
        assert alike(shown(*cell), np.arcsinh(weights[cell] / start) / (2 * half)), cell
    assert alike(shown(*small), 0.5), "what is pointed at has the middle of the scale"
    canvas.hover(*canvas.cell(0, 0))
    assert all(alike(shown(*cell), weights[cell]) for cell in others[1:]), "a large value needs no other scale"
    canvas.hover(*canvas.cell(*small))
    canvas.page.keyboard.up("Shift")
    assert all(alike(shown(*cell), weights[cell]) for cell in others)


def test_a_map_without_a_page_keeps_its_fixed_scale_under_the_pointer(map_canvas):
    weights = SEEN.weights[2]
    map_canvas.hover(*map_canvas.cell(12, 3))
    x, y = map_canvas.cell(7, 5)
    lift = map_canvas.geometry["stepY"] * 0.36
    shown = map_canvas.pixel(x, y - lift)[:3]
    assert max(abs(a - b) for a, b in zip(shown, colour_of(weights[7, 5]), strict=True)) <= 4


def test_hovering_a_row_label_leaves_only_that_row(map_canvas):
    canvas = map_canvas
    canvas.hover(2, 2)
    x, y = canvas.cell(7, 5)
    beside = (x, y - canvas.geometry["stepY"] * 0.36)
    strong = canvas.pixel(*beside)
    canvas.hover(canvas.geometry["x"] - 20, canvas.cell(7, 0)[1])
    assert canvas.pixel(*beside) == strong
    canvas.hover(canvas.geometry["x"] - 20, canvas.cell(3, 0)[1])
    assert sum(canvas.pixel(*beside)[:3]) > sum(strong[:3]) + 60  # fades into the white page


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


def test_a_zoomed_map_keeps_its_letters_when_it_is_laid_out_again(show):
    canvas = show("large")
    canvas.page.evaluate(
        """() => {
            const own = CanvasRenderingContext2D.prototype.measureText;
            globalThis.measured = 0;
            CanvasRenderingContext2D.prototype.measureText = function (text) {
                measured += 1;
                return own.call(this, text);
            };
        }"""
    )
    step, width = canvas.geometry["stepX"], canvas.page.viewport_size["width"]

    def narrower_and_back() -> dict:
        for each in (width - 100, width):
            canvas.page.set_viewport_size({"width": each, "height": 800})
            canvas.rest()
        return canvas.geometry

    assert narrower_and_back()["stepX"] == pytest.approx(step)
    count = canvas.page.evaluate("measured")
    assert count < 2 * 2 * 6 * 512, count  # for each of the two layouts, each label at most six times
    for _ in range(3):
        canvas.page.get_by_role("button", name="Zoom in").click()
    canvas.rest()
    zoomed = canvas.geometry["stepX"]
    assert narrower_and_back()["stepX"] == pytest.approx(zoomed, rel=0.001)


def test_within_a_head_of_the_grid_the_shift_key_moves(show):
    canvas = show("grid")
    canvas.page.locator("canvas").focus()
    for key in ("ArrowDown", "ArrowDown", "Shift+ArrowDown", "Shift+ArrowDown", "Shift+ArrowRight"):
        canvas.page.keyboard.press(key)
    said = canvas.live()
    assert said.startswith("layer 1, head 0. ‘·The’ looks at ‘·The’: ≈")
    canvas.page.keyboard.press("ArrowRight")
    assert canvas.live().startswith("layer 1, head 1")


def test_number_keys_switch_heads(show):
    canvas = show("lines")
    canvas.page.locator("canvas").focus()
    canvas.page.keyboard.press("ArrowDown")
    assert "head 2: " in canvas.live()
    for key in ("2", "7", "9"):  # there is no head 9
        canvas.page.keyboard.press(key)
    expect(canvas.page.locator(".chip[aria-pressed=true]")).to_have_text(["0", "5", "7"])
    said = canvas.live()
    assert "head 2: " not in said and "head 7: " in said


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


def test_signed_values_have_two_colours_around_nothing(show):
    canvas = show("scores")
    assert "−6.43" in canvas.hover(*canvas.cell(14, 2))
    x, y = canvas.cell(14, 2)
    lift = canvas.geometry["stepY"] * 0.36
    canvas.page.mouse.move(2, 2)
    canvas.rest()
    red, _, blue, _ = canvas.pixel(x, y - lift)
    assert blue > red + 40  # negative: blue
    x, y = canvas.cell(8, 6)
    red, _, blue, _ = canvas.pixel(x, y - lift)
    assert red > blue + 40  # positive: orange


def test_a_line_runs_around_the_outlined_cells_only(show):
    canvas = show("outlined")

    def darkest(row: int, column: int, side: str) -> int:
        x, y = canvas.cell(row, column)
        place = canvas.geometry
        edge = {"left": (x - place["stepX"] / 2, y), "top": (x, y - place["stepY"] / 2)}[side]
        step = (1, 0) if side == "left" else (0, 1)
        near = canvas.pixels([(edge[0] + at * step[0], edge[1] + at * step[1]) for at in (-1, 0, 1)])
        return min(sum(colour) if alpha > 200 else 765 for *colour, alpha in near)  # gaps are transparent

    borders = {(3, 3): "left", (5, 3): "left", (2, 4): "top"}
    assert all(darkest(*cell, side) < 200 for cell, side in borders.items())
    others = {(3, 4): "left", (4, 4): "top", (3, 2): "left", (1, 4): "top"}
    assert all(darkest(*cell, side) > 500 for cell, side in others.items())


def test_the_rule_between_blocks_crosses_no_name(show):
    canvas = show("blocks", width=1280)
    place = canvas.geometry
    assert place["stepY"] < 12, "rows are lower than their names"
    y = place["y"] + 30 * place["stepY"]
    rule = [alpha for *_, alpha in canvas.pixels([(place["x"] - left, y) for left in range(1, 60)])]
    assert min(rule[:6]) > 0, "it begins beside the map"
    assert min(rule[9:]) == 0, "and is not seen between the letters of a name"


@pytest.mark.parametrize("scene", ["many", "many sorted"])
def test_a_thousand_heads_stand_beside_the_large_map(show, scene):
    place = show(scene).geometry
    assert len(place["tiles"]) == 1024
    assert max(x + width for x, _, width, _ in place["tiles"]) < place["panel"]["x"]
    assert min(width for _, _, width, _ in place["tiles"]) >= 8
    (_, first, _, height), last = place["tiles"][0], place["tiles"][-1]
    assert last[1] - first < 40 * (height + 8)  # no space is reserved for words that do not fit


def test_the_grid_shows_the_head_under_the_pointer_and_returns_the_one_clicked(in_the_app):
    canvas = in_the_app("grid")
    before = len(canvas.sent)
    x, y, width, height = canvas.geometry["tiles"][2 * 8 + 3]
    panel = canvas.geometry["panel"]
    corner = (panel["x"] + 0.5 * panel["stepX"], panel["y"] + 0.5 * panel["stepY"])
    tip = canvas.hover(x + width * 0.02, y + height * 0.98)
    assert "layer 2, head 3" in tip and "‘</s>’ looks at ‘<s>’: ≈" in tip
    assert "‘<s>’ looks at ‘<s>’: ≈1.00" in canvas.hover(x + width * 0.02, y + height * 0.02)
    assert max(abs(a - b) for a, b in zip(canvas.pixel(*corner)[:3], colour_of(1.0), strict=True)) <= 4
    assert len(canvas.sent) == before
    canvas.page.mouse.click(*canvas.at(x + width / 2, y + height / 2))
    canvas.says("head HeadChoice(layer=2, head=3)")
    canvas.page.locator("canvas").focus()
    for key in ("ArrowRight", "ArrowRight", "ArrowDown", "Enter"):  # the cursor begins at the chosen head
        canvas.page.keyboard.press(key)
    canvas.says("head HeadChoice(layer=3, head=4)")


SHAPES = [(3, 8), (4, 8), (6, 4), (12, 12), (30, 9)]


@pytest.mark.parametrize(("layers", "heads"), SHAPES)
def test_all_heads_of_every_shape_stand_under_the_large_ones_on_a_projector(show, layers, heads):
    canvas = show(f"heads {layers} {heads}", width=1280, height=720)
    place, box = canvas.geometry, canvas.page.locator("canvas").bounding_box()
    assert len(place["tiles"]) == layers * heads and len(place["large"]) == 3
    assert box["height"] <= 504, "with a page's head above it ends on the first screen"
    lowest = max(large["y"] + 15 * large["stepY"] for large in place["large"])
    for x, y, width, height in place["tiles"]:
        assert min(width, height) >= 9, "can be seen and clicked"
        assert x >= 0 and x + width <= box["width"] + 1 and lowest <= y and y + height <= box["height"]
    spots = [tuple(tile[:2]) for tile in place["tiles"]]
    assert len(set(spots)) == len(spots)
    if layers == 3:
        assert len({x for x, _ in spots}) == heads, "a few layers stand below each other, under one row of names"
    assert [large["tile"] for large in place["large"]] == [heads + 2, 2 * heads, -1]
    x, y, width, height = place["tiles"][-1]  # last layer, last head
    assert canvas.hover(x + width / 2, y + height / 2).startswith(f"layer {layers - 1}, head {heads - 1}")
    assert canvas.geometry["large"][-1]["tile"] == layers * heads - 1, "what is pointed at stands large"
    canvas.page.mouse.click(*canvas.at(x + width / 2, y + height / 2))
    canvas.hover(2, 2)
    assert canvas.geometry["large"][-1]["tile"] == layers * heads - 1, "what is chosen, too"


def test_the_large_maps_stay_while_small_ones_are_scrolled_and_shared_keys_stand_together(in_the_app):
    canvas = in_the_app("heads 30 9 3", width=1280, height=720)
    page, pinned, whole = canvas.page, canvas.page.locator("canvas.pinned"), "canvas[data-geometry]"
    place = canvas.geometry
    width = place["tiles"][0][2]
    gaps = [b[0] - a[0] - a[2] for a, b in pairwise(place["tiles"][:9])]
    assert width >= 48 and all(gaps[at] > gaps[0] + 3 for at in (2, 5)), "three of them, then a wider gap"
    assert len({gaps[at] for at in (0, 1, 3, 4, 6, 7)}) <= 2, "by rounding only"
    page.locator(whole).evaluate("(it) => it.getRootNode().host.scrollIntoView(true)")
    before = pinned.bounding_box()
    page.mouse.move(640, 600)
    page.mouse.wheel(0, 1500)
    assert eventually(page, lambda: page.locator(whole).bounding_box()["y"] < -1000, True)
    after, picture = pinned.bounding_box(), page.locator(whole).bounding_box()
    assert 0 <= after["y"] <= before["y"] + 60 and after["height"] < 0.6 * 720
    seen = next(i for i, (_, y, _, tall) in enumerate(place["tiles"]) if picture["y"] + y > after["height"] + 120)
    x, y, width, height = place["tiles"][seen]
    page.mouse.move(picture["x"] + x + width / 2, picture["y"] + y + height / 2)
    last = lambda: canvas.geometry["large"][-1]  # noqa: E731
    assert eventually(page, lambda: last()["tile"], seen)
    page.mouse.click(picture["x"] + x + width / 2, picture["y"] + y + height / 2)
    canvas.says(f"head HeadChoice(layer={seen // 9}, head={seen % 9})")
    large = last()
    page.mouse.move(
        after["x"] + large["x"] + large["stepX"] * 1.5, pinned.bounding_box()["y"] + large["y"] + large["stepY"] * 4.5
    )
    tip = page.locator(".tip")
    expect(tip).to_contain_text(f"layer {seen // 9}, head {seen % 9}")
    assert 0 < tip.bounding_box()["y"] < 720, "beside the pointer, not where the picture begins"


def test_a_head_of_the_small_maps_and_of_the_large_ones_is_told_to_python(in_the_app):
    canvas = in_the_app("heads 30 9", width=1280, height=720)
    x, y, width, height = canvas.geometry["tiles"][-1]
    canvas.page.mouse.click(*canvas.at(x + width / 2, y + height / 2))
    canvas.says("head HeadChoice(layer=29, head=8)")
    canvas.hover(2, 2)
    assert canvas.geometry["large"][-1]["tile"] == 30 * 9 - 1, "what is chosen, too"
    large = canvas.geometry["large"][0]
    canvas.page.mouse.click(*canvas.at(large["x"] + large["stepX"] / 2, large["y"] + large["stepY"] / 2))
    canvas.says("head HeadChoice(layer=1, head=2)")


def test_a_head_without_a_job_is_pale_and_one_with_a_job_has_its_colours(show):
    canvas = show("heads 3 8")
    canvas.hover(2, 2)

    def corner(tile: int) -> tuple[int, ...]:  # the first row, which attends only to the first token
        x, y, width, height = canvas.geometry["tiles"][tile]
        return canvas.pixel(x + width * 0.033, y + height * 0.033)

    *bright, solid = corner(8 + 2)
    assert max(abs(a - b) for a, b in zip(bright, colour_of(1.0), strict=True)) <= 4 and solid == 255
    assert corner(0)[3] < 128, "the page shows through"


def test_the_keyboard_walks_over_the_small_maps_and_into_a_large_one(in_the_app):
    canvas = in_the_app("heads 30 9")
    canvas.page.locator("canvas").focus()
    canvas.page.keyboard.press("ArrowDown")
    assert canvas.live().startswith("layer 1, head 2 · Job of 1.2")
    for _ in range(9):  # across the boundary of a block
        canvas.page.keyboard.press("ArrowDown")
    assert canvas.live().startswith("layer 10, head 2")
    for key in ("Shift+ArrowDown", "Shift+ArrowDown", "Shift+ArrowRight"):
        canvas.page.keyboard.press(key)
    assert canvas.live().startswith("layer 10, head 2 · Job of 10.2. ‘·The’ looks at ‘·The’")
    canvas.page.keyboard.press("Enter")
    canvas.says("head HeadChoice(layer=10, head=2)")


def test_an_overview_of_thirty_layers_ends_on_the_first_screen(show):
    canvas = show("deep overview", width=1280, height=720)
    (tiles,) = canvas.geometry["parts"]
    box = canvas.page.locator("canvas").bounding_box()
    assert len(tiles) == 270 and box["height"] <= 470
    assert max(y + height for _, y, _, height in tiles) <= box["height"]
    assert min(min(width, height) for _, _, width, height in tiles) >= 12


def test_a_head_that_is_clicked_is_outlined_before_python_answers(in_the_app):
    canvas = in_the_app("grid")
    canvas.page.evaluate("() => { WebSocket.prototype.send = () => {}; }")  # nothing was sent to Python
    x, y, width, height = canvas.geometry["tiles"][10]
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
