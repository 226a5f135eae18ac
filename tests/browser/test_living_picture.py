"""The living picture in Chromium: its numbers are the trace's; it plays, unfolds, keeps its controls.

Its gestures without a browser: tests/drawings/scenes.test.js; what it is sent: tests/charts.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

import transformer
from charts.canvas.living_picture_canvas import living_picture_canvas
from tests.browser.conftest import PHONE, eventually, pause, settle
from tests.browser.drawing import Drawing
from transformer.layers.residual_stream import sublayers
from transformer.predictions.living_picture_numbers import living_picture_numbers, threads
from transformer.runs.traces import Trace

pytestmark = pytest.mark.browser
SENTENCE = "The old man told us a story."
ROOT = "document.querySelector('main').shadowRoot"
# The tables that the button “Table” shows: the beginning of each caption, and the numbers of each row.
TABLES = f"""() => Object.fromEntries([...{ROOT}.querySelectorAll(".table table")].map((table) => [
    table.caption.textContent.split(". ")[0],
    [...table.tBodies[0].rows].map((row) => [...row.cells].slice(1).map((cell) => cell.textContent))]))"""


@pytest.fixture
def trace(tiny_checkpoint: Callable[[str], transformer.Checkpoint]) -> Trace:
    return transformer.trace(tiny_checkpoint("translator"), SENTENCE)


@pytest.fixture
def show(visit: Callable[..., Page], trace: Trace, tmp_path: Path) -> Callable[..., Page]:
    def shown(**more: object) -> Page:
        layers = [(stack, layer) for stack in trace.stacks for layer in range(trace.n_layers(stack))]
        canvas = living_picture_canvas(living_picture_numbers(trace, inside=layers), **more)
        return visit(canvas.save(tmp_path / "picture.html").as_uri())

    return shown


def printed(value: float) -> str:
    """Format a number as the figure does: three significant digits."""
    value = float(value)
    if value == 0:
        return "0"
    if abs(value) >= 0.001:
        return f"{value:#.3g}".rstrip(".").replace("-", "−")
    digits, exponent = f"{value:.2e}".split("e")
    return f"{digits}·10{str(int(exponent)).translate(str.maketrans('-0123456789', '⁻⁰¹²³⁴⁵⁶⁷⁸⁹'))}".replace("-", "−")


def middle(page: Page, **target: object) -> tuple[float, float]:
    """Return the middle of what has these values among the targets of the picture."""
    places = Drawing(page).state["places"]
    x, y, width, height = next(one["rect"] for one in reversed(places) if target.items() <= one.items())
    return x + min(width / 2, 6), y + height / 2


def button(page: Page, name: str) -> None:
    page.get_by_role("button", name=name, exact=True).click()


def tables(page: Page) -> dict[str, list[list[str]]]:
    switch = page.get_by_role("button", name="Table")
    switch.click()
    found = page.evaluate(TABLES)
    switch.click()
    return found


def beat(page: Page) -> int:
    return Drawing(page).state["beat"]


def test_every_number_of_an_unfolded_attention_is_that_of_the_trace(show: Callable[..., Page], trace: Trace) -> None:
    page = show()
    Drawing(page).press("Enter")
    state, found = Drawing(page).state, tables(page)
    stack, layer, kind = (state["unfolded"][part] for part in ("stack", "layer", "kind"))
    query, head = state["place"]["position"], state["head"]
    view, prefix = trace.attention(stack, layer, kind), f"{stack}.layers.{layer}.{kind}_attention"
    allowed, count = view.allowed[query], len(found["softmax"][0])

    def row(name: str) -> list[str]:
        return next(rows for caption, rows in found.items() if caption.startswith(name))[0]

    assert [text == "masked" for text in row("softmax")] == [not one for one in allowed[:count]]
    for name, numbers in (("softmax", view.weights), ("÷ √", view.scores)):
        shown = [text for text, one in zip(row(name), allowed[:count], strict=True) if one]
        assert shown == [printed(numbers[head, query, k]) for k in range(count) if allowed[k]]
    for name, part in (("keys K", "key"), ("values V", "value")):
        values = trace.values(f"{prefix}.{part}")[head][:count]
        assert found[name] == [[printed(value) for value in channel] for channel in values.T]
    for name, part in (("query Q", "query"), ("sum", "context")):
        assert [one for (one,) in found[name]] == [printed(v) for v in trace.values(f"{prefix}.{part}")[head, query]]
    products = trace.values(f"{prefix}.key")[head, :count] @ trace.values(f"{prefix}.query")[head, query]
    for text, product in zip(row("q · k"), products, strict=True):
        assert "·10" in text or float(text.replace("−", "-")) == pytest.approx(product, rel=6e-3, abs=1e-3)
    after = {(step.layer, step.kind): step for step in sublayers(trace, stack)}[layer, f"{kind}_attention"].after
    last = next(rows for caption, rows in found.items() if "x + update" in caption)
    assert [one for (one,) in last] == [printed(value) for value in threads(trace.values(after)[query])]


def test_it_plays_pauses_unfolds_while_it_plays_and_goes_by_keys(show: Callable[..., Page]) -> None:
    page = show()
    drawing, slider = Drawing(page), page.get_by_role("slider")
    last = drawing.state["beats"] - 1
    assert beat(page) == last, "it opens with the whole run"
    button(page, "Play")
    moves = f"(from) => Number({ROOT}.querySelector('input').value) > from"
    page.wait_for_function(moves, arg=0)
    button(page, "Pause")
    stopped = beat(page)
    pause(page, 900)
    assert beat(page) == stopped > 0
    for pressed, wanted in (("Home", 0), ("ArrowRight", 1), ("ArrowLeft", 0), ("End", last)):
        drawing.press(pressed)
        assert beat(page) == wanted
        expect(slider).to_have_value(str(wanted))
    page.emulate_media(reduced_motion="reduce")
    drawing.press("Home", "ArrowRight")
    before = drawing.pixels()
    pause(page, 300)
    assert drawing.pixels() == before, "who wants no motion gets none"

    speed = page.get_by_role("button", name="Speed")
    speed.click()
    speed.click()
    button(page, "Play")
    box = page.get_by_role("button", name="Unfold").bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.down()  # the finger stays down longer than a beat lasts
    page.wait_for_function(moves, arg=int(slider.input_value()))
    page.mouse.up()
    expect(page.get_by_role("button", name="‹ Back")).to_be_visible()


def test_a_click_follows_opens_unfolds_and_escape_goes_back(show: Callable[..., Page]) -> None:
    page = show()
    drawing, panel = Drawing(page), page.locator(".arithmetic")
    drawing.click(middle(page, what="lane", stack="decoder", position=2))
    assert drawing.state["place"] == {"stack": "decoder", "position": 2}
    drawing.click(middle(page, what="layer", stack="decoder", layer=1))
    drawing.click(middle(page, what="band", stack="decoder", step=4))
    assert drawing.state["unfolded"] == {"stack": "decoder", "layer": 1, "part": "attention", "kind": "cross"}
    drawing.click(middle(page, what="cell", row=[*tables(page)].index("q · k")))
    expect(panel).to_contain_text("q · k")
    for line in filter(None, panel.locator("tbody").inner_text().replace("−", "-").split("\n")):
        _, *numbers = line.split("\t")
        if not any("·10" in number for number in numbers):
            q, k, product = map(float, numbers)
            assert q * k == pytest.approx(product, rel=0.02, abs=2e-3)
    drawing.press("Escape")
    expect(panel).to_have_count(0)
    drawing.press("Escape")
    assert drawing.state["unfolded"] is None

    focused = f"() => {ROOT}.activeElement?.textContent"
    for name, then in (("Unfold", "‹ Back"), ("feed-forward", "feed-forward"), ("‹ Back", "Unfold")):
        page.get_by_role("button", name=name, exact=True).focus()
        page.keyboard.press("Enter")
        assert page.evaluate(focused) == then, "who unfolds with the keyboard keeps the focus"
    drawing.click(middle(page, what="answer", k=0))
    expect(panel.locator("tbody tr").first).to_be_visible()


def test_a_picture_wider_than_a_phone_is_scrolled_to_what_it_is_about(show: Callable[..., Page]) -> None:
    page = show()
    page.set_viewport_size(PHONE)
    box = page.locator("main .box")
    assert eventually(page, lambda: box.evaluate("box => box.scrollWidth > box.clientWidth && box.scrollLeft > 0"))
    assert box.evaluate("box => box.scrollHeight === box.clientHeight"), "it scrolls in one direction only"
    place = {"what": "lane", "stack": "encoder", "position": 0}
    x, y = middle(page, **place)
    Drawing(page).click((x, y))  # scrolls there first
    assert eventually(page, lambda: box.evaluate("box => box.scrollLeft") < x)
    Drawing(page).hover((x, y))
    tip, canvas = page.locator(".tip").bounding_box(), Drawing(page).canvas.bounding_box()
    assert canvas["x"] + x < tip["x"] < canvas["x"] + x + 40, "the tooltip is beside the pointer"


def test_a_browser_without_canvas_shows_the_run_as_text(show: Callable[..., Page]) -> None:
    page = show()
    # The tab is returned with its script, which affects only this page.
    page.add_init_script("if (location.hash === '#no') HTMLCanvasElement.prototype.getContext = () => null")
    page.goto(f"{page.url}#no")
    page.reload()
    expect(page.locator("main table").first).to_be_attached()


def test_the_controls_outlive_what_python_sends_anew(visit: Callable[..., Page]) -> None:
    """Dragging the slider, or pressing a button, may last while the page runs."""
    page = visit("?checkpoint=gpt-en")
    slider, unfold = page.get_by_role("slider").first, page.get_by_role("button", name="Unfold")
    slider.evaluate("node => { node.isTheSame = true; }")
    before = page.url
    Drawing(page).click(middle(page, what="lane", stack="decoder", position=2))
    assert eventually(page, lambda: page.url != before), "when the hand rests, Python receives the position"
    settle(page)
    assert slider.evaluate("node => node.isTheSame")
    unfold.click()
    back = page.get_by_role("button", name="‹ Back")
    back.evaluate("node => { node.isTheSame = true; }")
    pause(page, 1200)
    settle(page)
    assert back.evaluate("node => node.isTheSame")
    expect(page.get_by_test_id("stMetric").last).to_be_visible()  # the rest of the page has come
