"""Presenting: large letters without the sidebar, and the keys of a remote, Page Up and Page Down."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import eventually, settle
from tests.browser.test_shell import address
from tests.nights import by_day

pytestmark = pytest.mark.browser


def press(page: Page, *keys: str) -> None:
    for key in keys:
        page.wait_for_timeout(500)  # the script that hears the keys comes after the page
        page.keyboard.press(key)
        settle(page)


def path(page: Page) -> str:
    return urlsplit(page.url).path


def test_pages_turn_and_so_do_the_steps_of_a_lesson(app: str, visit: Callable[..., Page]) -> None:
    page = visit(f"{app}/attention?presenter=1&layer=1")
    press(page, "PageDown")
    assert path(page) == "/heads" and address(page) == {"presenter": "1", "layer": "1"}
    page.locator("[data-testid=stMain] canvas").filter(visible=True).first.focus()
    press(page, "PageUp", "PageUp")
    assert path(page) == "/positions"

    page = visit(f"{app}/attention?presenter=1&lesson=03-one-head&lesson_step=1")
    press(page, "PageDown")
    assert address(page)["lesson_step"] == "2"


def test_who_types_turns_no_page(app: str, visit: Callable[..., Page]) -> None:
    page = visit(f"{app}/attention?presenter=1")
    page.get_by_role("textbox", name="Sentence").focus()
    press(page, "f", "PageDown")
    assert eventually(page, lambda: "f" in address(page).get("sentence", ""), True)
    assert path(page) == "/attention"


def test_the_keys_follow_the_switch(app: str, visit: Callable[..., Page]) -> None:
    page = visit(f"{app}/attention")
    press(page, "PageDown")
    assert address(page) == {} and path(page) == "/attention"
    page.get_by_text("Presenter", exact=True).click()
    settle(page)
    press(page, "PageDown")
    assert path(page) == "/heads"


@pytest.mark.xfail(reason="at 720 px the picture of a presented Overview can end a few pixels below the window")
@pytest.mark.parametrize("height", by_day([720, 1080], [720]))
def test_a_presented_overview_shows_the_output_and_the_whole_picture(
    app: str, visit: Callable[..., Page], height: int
) -> None:
    page = visit(f"{app}/?presenter=1&sentence=The+old+man+told+us+a+story.")
    page.set_viewport_size({"width": 1280, "height": height})
    picture = page.locator(".st-key-living-picture")

    def ends_in_the_window() -> bool:
        box = picture.bounding_box()
        return box["y"] + box["height"] <= height

    assert eventually(page, ends_in_the_window, True)
    expect(page.get_by_test_id("stSidebar")).not_to_be_in_viewport()


def test_a_remote_plays_the_picture_before_it_turns_the_page(app: str, visit: Callable[..., Page]) -> None:
    page = visit(f"{app}/?presenter=1&checkpoint=gpt")
    slider = page.get_by_role("slider", name="Position in the animation")
    last = slider.get_attribute("max")
    expect(slider).to_have_value(last)
    press(page, "PageDown")
    expect(slider).to_have_value("0")
    press(page, "PageDown", "PageDown", "PageUp")
    expect(slider).to_have_value("1")
    page.get_by_role("button", name="Play").click()
    page.get_by_role("button", name="Pause").click()
    press(page, "End")
    expect(slider).to_have_value(last)
    press(page, "PageDown")
    assert path(page) == "/tokens"
    press(page, "PageUp", "PageUp")
    assert path(page) == "/"
