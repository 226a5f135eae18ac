"""Presenting with the keyboard: keys move the focus, turn pages, enter full screen, and Escape leaves."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import eventually, pause, settle
from tests.browser.seats import Seat
from tests.browser.test_shell import address, chosen
from tests.nights import by_day

pytestmark = pytest.mark.browser
FULL = "() => !!document.fullscreenElement"


def press(page: Page, *keys: str) -> None:
    if "presenter" in address(page):
        expect(page.locator(".presenter-keys")).to_be_visible()  # a busy machine may load its script late
    for key in keys:
        page.keyboard.press(key)
    pause(page, 250)  # Python receives keys only after a pause
    settle(page)


def test_the_keys_move_what_is_looked_at(app: str, visit: Callable[..., Page]) -> None:
    page = visit(f"{app}/attention?presenter=1&stack=decoder&kind=cross&target=Le+chat.")
    expect(page.locator(".presenter-keys")).to_contain_text("token")
    press(page, "ArrowRight", "ArrowRight", "ArrowLeft", "ArrowRight")
    assert address(page)["token"] == "2"
    press(page, "Shift+ArrowRight")
    press(page, "ArrowDown")
    assert [chosen(page, what) for what in ("Layer", "Head")] == ["1", "1"]
    press(page, "ArrowUp")
    assert chosen(page, "Layer") == "0" and address(page)["head"] == "1"


def test_what_has_no_further_to_go_sends_nothing_and_a_focused_picture_comes_last(
    app: str, sit: Callable[..., Seat]
) -> None:
    seat = sit(f"{app}/heads?presenter=1&layer=1&head=1", width=1280, height=720)  # a larger screen reports its scale
    page, sent = seat.page, seat.sent
    before = len(sent)
    assert before
    press(page, "ArrowDown", "ArrowRight", "x", "Home")
    assert len(sent) == before
    press(page, "ArrowLeft")
    assert len(sent) > before and "head" not in address(page)

    def focus_the_picture() -> None:
        page.locator("[data-testid=stMain] canvas").filter(visible=True).first.focus()

    focus_the_picture()
    press(page, "PageUp")
    assert urlsplit(page.url).path == "/attention"
    focus_the_picture()
    press(page, "ArrowRight", "Escape")
    assert address(page) == {"layer": "1"}


def test_who_types_moves_nothing(app: str, visit: Callable[..., Page]) -> None:
    page = visit(f"{app}/attention?presenter=1")
    page.get_by_role("textbox", name="Sentence").focus()
    press(page, "ArrowRight", "ArrowDown", "f", "PageDown")
    # The letter is part of the sentence, which the page follows.
    assert eventually(page, lambda: "f" in address(page).get("sentence", ""), True)
    # A typed sentence opens at a head that attends from one of its words to another.
    begun = {"stack", "kind", "layer", "head", "token"}
    assert address(page).keys() - begun == {"presenter", "sentence"} and urlsplit(page.url).path == "/attention"
    assert not page.evaluate(FULL)


def test_the_keys_work_where_the_switch_has_the_focus(app: str, visit: Callable[..., Page]) -> None:
    page = visit(f"{app}/attention")
    press(page, "ArrowDown", "ArrowRight", "PageDown")
    assert address(page) == {} and urlsplit(page.url).path == "/attention"  # without the presenter there are no keys
    page.get_by_text("Presenter", exact=True).click()
    settle(page)
    expect(page.locator(".presenter-keys")).to_be_visible()
    press(page, "ArrowRight")
    assert address(page)["token"] == "1"
    press(page, "PageDown")
    assert urlsplit(page.url).path == "/heads"
    press(page, "Escape")
    assert "presenter" not in address(page)


def test_pages_turn_and_so_do_the_steps_of_a_lesson(app: str, visit: Callable[..., Page]) -> None:
    page = visit(f"{app}/attention?presenter=1")
    press(page, "PageDown")
    assert urlsplit(page.url).path == "/heads" and address(page)["presenter"] == "1"
    press(page, "PageUp")
    press(page, "PageUp")
    assert urlsplit(page.url).path == "/positions"

    page = visit(f"{app}/attention?presenter=1&lesson=03-one-head&lesson_step=1")
    press(page, "PageDown")
    assert address(page)["lesson_step"] == "2"


@pytest.mark.parametrize("height", by_day([720, 1080], [720]))
def test_a_presented_overview_shows_input_output_and_the_whole_picture(
    app: str, visit: Callable[..., Page], height: int
) -> None:
    page = visit(f"{app}/?presenter=1&sentence=The+old+man+told+us+a+story.")
    page.set_viewport_size({"width": 1280, "height": height})
    line = page.locator("[class*=st-key-presented-] p")
    expect(line).to_contain_text("The old man told us a story. →")
    canvas = page.locator("canvas[data-geometry]").first

    def ends_in_the_window() -> bool:
        box = canvas.bounding_box()
        return 0.9 * height < box["y"] + box["height"] <= height

    assert eventually(page, ends_in_the_window, True)
    assert line.evaluate("node => parseFloat(getComputedStyle(node).fontSize)") >= 22


def test_the_decoding_page_keeps_its_stepper(app: str, visit: Callable[..., Page]) -> None:
    page = visit(f"{app}/decoding?presenter=1&target=Le+chat+est+assis.&step=0")
    expect(page.locator(".presenter-keys")).to_contain_text("step")
    expect(page.locator(".stepper .count")).to_be_visible()  # the script of the keys may load late as well
    press(page, "ArrowRight", "ArrowRight")
    page.wait_for_function("() => location.search.includes('step=2')")  # the address follows once the reader pauses
    assert address(page)["step"] == "2" and "head" not in address(page)
    page.get_by_text("head 0", exact=True).click()  # the mean of all heads has no head to choose
    settle(page)
    page.evaluate("document.activeElement.blur()")  # a row of buttons uses the arrow keys itself
    press(page, "Shift+ArrowRight")
    assert eventually(page, lambda: address(page).get("head"), "1")


def test_full_screen_and_out_again(app: str, visit: Callable[..., Page]) -> None:
    page = visit(f"{app}/tokens?presenter=1")
    press(page, "f")
    assert eventually(page, lambda: page.evaluate(FULL), True)
    press(page, "Escape")
    assert eventually(page, lambda: page.evaluate(FULL), False)
    if "presenter" in address(page):  # the browser's own Escape only leaves full screen
        press(page, "Escape")
    assert address(page) == {}
    expect(page.locator(".presenter-keys")).to_have_count(0)


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
    press(page, "b")
    expect(page.locator(".darkness")).to_be_visible()
    press(page, "PageDown")
    expect(page.locator(".darkness")).to_have_count(0)
    assert urlsplit(page.url).path == "/"
    press(page, "PageDown")
    assert urlsplit(page.url).path == "/tokens"
    press(page, "PageUp", "PageUp")
    assert urlsplit(page.url).path == "/"
