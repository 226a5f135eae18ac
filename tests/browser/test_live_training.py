"""“Train one now” in a browser: figures update by themselves, are not rebuilt, and stop on request."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import open_page, settle

pytestmark = pytest.mark.browser
SOON = 90_000  # milliseconds; a busy machine draws the first figure slowly


def step(page: Page) -> Locator:
    return page.get_by_test_id("stMetricValue").first


def curve(page: Page) -> Locator:
    return page.locator("[data-testid=stVegaLiteChart] .marks").first


def map_of(page: Page) -> Locator:
    return page.locator("canvas:not(.marks)").first


@pytest.fixture
def section(app: str, visit: Callable[..., Page]) -> Page:
    page = visit(f"{app}/training?checkpoint=tiny-gpt")
    page.get_by_role("radio", name="Train one now").click()
    # The untrained model is drawn first, which also loads the browser's libraries.
    expect(curve(page)).to_be_visible(timeout=SOON)
    expect(map_of(page)).to_be_visible(timeout=SOON)
    expect(step(page)).to_have_text("0")
    settle(page)
    return page


def start(page: Page) -> None:
    page.get_by_role("button", name="Start", exact=True).click()
    expect(page.get_by_role("button", name="Stop", exact=True)).to_be_enabled(timeout=SOON)


def test_the_curve_grows_by_itself_until_stop_and_is_there_again_later(section: Page) -> None:
    start(section)
    expect(step(section)).not_to_have_text("0", timeout=SOON)
    # Chart and map are updated in place: the same elements are still there later.
    pictures = (curve(section), map_of(section))
    for picture in pictures:
        picture.evaluate("element => { element.dataset.seen = 'before'; }")
    at = step(section).inner_text()
    expect(step(section)).not_to_have_text(at, timeout=SOON)
    for picture in pictures:
        expect(picture).to_have_attribute("data-seen", "before")
    section.get_by_role("button", name="Stop", exact=True).click()
    expect(section.get_by_text("stopped after")).to_be_visible(timeout=SOON)
    settle(section)
    stopped = step(section).inner_text()
    section.wait_for_timeout(2500)
    assert step(section).inner_text() == stopped
    # Back to the beginning with the slider, in place.
    slider = section.get_by_role("slider")
    slider.focus()
    slider.press("Home")
    expect(step(section)).to_have_text("0", timeout=SOON)

    # Another page, and back: the result is still there.
    slider.press("End")
    expect(step(section)).to_have_text(stopped)
    open_page(section, "Tokens")
    expect(section.get_by_role("heading", name="Tokens", exact=True, level=1)).to_be_visible()
    settle(section)
    open_page(section, "Training")
    expect(section.get_by_text("stopped after")).to_be_visible(timeout=SOON)
    expect(step(section)).to_have_text(stopped)
    own = section.get_by_placeholder("your name")
    own.fill("<b>")
    own.press("Enter")
    expect(section.get_by_text("knows the letters a to z only")).to_be_visible(timeout=SOON)
    own.fill("anna")
    own.press("Enter")
    expect(section.get_by_text("anna →")).to_be_visible(timeout=SOON)
