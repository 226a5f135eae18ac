"""What a click opens is visible on the same screen and gets the keyboard focus."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import eventually, pause, settle
from tests.browser.scenes import painted

pytestmark = pytest.mark.browser
PROJECTOR = {"width": 1280, "height": 720}
CANVAS = "[data-testid=stMain] canvas"


def edges(place: Locator) -> tuple[float, float]:
    """Return the upper and the lower edge of an element; outside of the window while it is drawn anew."""
    box = place.bounding_box()
    return (box["y"], box["y"] + box["height"]) if box else (-1.0, -1.0)


def is_reached(place: Locator) -> None:
    """Check that the element has the keyboard focus and its top is in the window."""
    expect(place).to_be_focused()
    assert eventually(place.page, lambda: 0 <= edges(place)[0] < 0.75 * PROJECTOR["height"], True), edges(place)


def ends_in_the_window(place: Locator) -> None:
    def ends() -> bool:
        upper, lower = edges(place)
        return upper >= 0 and lower <= PROJECTOR["height"]

    assert eventually(place.page, ends, True), edges(place)


def test_the_keyboard_reaches_the_map_and_the_arithmetic_of_a_cell_stands_beside_it(
    shipped: str, visit: Callable[..., Page]
) -> None:
    page = visit(f"{shipped}/attention?language=fr", **PROJECTOR)
    expect(page.locator("html")).to_have_attribute("lang", "fr")
    picture = page.locator(CANVAS).filter(visible=True).first
    page.keyboard.press("Tab")  # from the keyboard, the figure is reached first
    expect(page.locator(".skip-to-figure")).to_be_focused()
    expect(page.locator(".skip-to-figure")).to_be_in_viewport()
    page.keyboard.press("Enter")
    expect(picture).to_be_focused()

    _, before = painted(picture)
    picture.click(position={"x": 200, "y": 150})
    settle(page)
    arithmetic = page.locator(".st-key-attention-arithmetic")
    is_reached(arithmetic)
    ends_in_the_window(arithmetic)
    assert painted(picture)[1] == before and arithmetic.bounding_box()["x"] >= before["x"] + before["width"]

    page.reload()  # opening an address moves no focus
    settle(page)
    expect(arithmetic).to_be_visible()
    expect(arithmetic).not_to_be_focused()


def test_an_answer_stands_below_its_guess(shipped: str, visit: Callable[..., Page]) -> None:
    page = visit(f"{shipped}/bugs", **PROJECTOR)
    settle(page)
    guesses = page.locator(".st-key-bug-guesses button")
    ends_in_the_window(guesses.last)
    guesses.first.click()
    settle(page)
    is_reached(page.locator(".st-key-bug-answer"))


@pytest.mark.parametrize("path", ["surgery?edit=zero:encoder.0.self.0", "masks?mask=window+2"])
def test_the_effect_of_an_edit_stands_beside_the_picture(shipped: str, visit: Callable[..., Page], path: str) -> None:
    page = visit(f"{shipped}/{path}", **PROJECTOR)
    numbers = page.get_by_test_id("stExpander").filter(has_text="In numbers")
    for part in (page.locator(".st-key-answers"), numbers):
        ends_in_the_window(part)
    expect(page.locator(".st-key-numbers")).not_to_be_visible()
    expect(page.locator(".st-key-answers")).to_have_attribute("aria-live", "polite")


def test_no_number_beside_a_picture_is_cut(shipped: str, visit: Callable[..., Page]) -> None:
    page = visit(f"{shipped}/surgery?language=fr&presenter=1&edit=zero:encoder.0.self.0", **PROJECTOR)
    page.get_by_test_id("stExpander").filter(has_text="En chiffres").locator("summary").click()
    expect(page.locator(".st-key-numbers")).to_be_visible()
    cut = page.locator(".st-key-numbers").evaluate(
        """node => [...node.querySelectorAll("[data-testid=stMetricValue], [data-testid=stMetricDelta]")]
          .flatMap((one) => [one, ...one.querySelectorAll("*")]).filter((one) => one.scrollWidth > one.clientWidth + 1
            && getComputedStyle(one).overflow !== "visible").map((one) => one.textContent)"""
    )
    assert not cut


def test_the_bar_of_a_lesson_stays_in_sight_and_so_does_the_figure(shipped: str, visit: Callable[..., Page]) -> None:
    page = visit(f"{shipped}/attention?lesson=03-one-head&lesson_step=3", **PROJECTOR)
    bar, main = page.locator(".st-key-lesson-bar"), page.get_by_test_id("stMain")

    def ends_above_the_bar(figure: str, share: float = 1.0) -> bool:
        below, box = bar.bounding_box(), page.locator(f".st-key-{figure}").bounding_box()
        return box["y"] >= 0 and box["y"] + share * box["height"] <= below["y"] + 1

    assert eventually(page, lambda: ends_above_the_bar("attention-map"), True)
    main.evaluate("node => node.scrollTo(0, node.scrollHeight)")
    ends_in_the_window(bar)
    page.locator(".st-key-lesson-back button").click()  # a step may be about another part of the page than the map
    settle(page)
    assert eventually(page, lambda: ends_above_the_bar("attention-projections"), True)
    page.goto(f"{shipped}/heads?lesson=04-many-heads&lesson_step=1")
    settle(page)
    page.locator(".st-key-lesson-next button").click()
    settle(page)
    assert eventually(page, lambda: ends_above_the_bar("heads-grid", 0.9), True)
    page.goto(f"{shipped}/surgery?lesson=05-what-a-map-is-worth&lesson_step=2")
    settle(page)
    pause(page, 1000)  # the browser used to follow what had been drawn above the figure, once it was in sight
    assert eventually(page, lambda: ends_above_the_bar("answers"), True)


def test_sliders_stand_beside_the_bars_that_they_move(shipped: str, visit: Callable[..., Page]) -> None:
    page = visit(f"{shipped}/decoding", **PROJECTOR)
    bars = page.locator(".st-key-figure-from-logits-to-a-choice .js-plotly-plot")

    def is_beside(name: str) -> bool:
        slider, drawn = page.locator(f".st-key-{name}").bounding_box(), bars.bounding_box()
        lower, end = slider["y"] + slider["height"], drawn["y"] + drawn["height"]
        return slider["x"] + slider["width"] <= drawn["x"] and drawn["y"] - 40 <= slider["y"] and lower <= end

    for name in ("temperature", "top_k", "top_p"):
        assert eventually(page, lambda name=name: is_beside(name), True), name
