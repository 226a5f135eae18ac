"""A class in the browser: two instructors and two students, one at a laptop and one at a phone."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.browser.conftest import PHONE, SECRET, eventually, key, sentence_box
from tests.browser.hand import KEY, Hand
from tests.browser.seats import Seat

pytestmark = pytest.mark.browser
SOON = 60_000  # milliseconds
OWN = "We went to the sea, and "


def button(page: Page, name: str) -> Locator:
    return key(page, name).get_by_role("button")


def unlock(desk: Page) -> None:
    desk.locator("input[type=password]").fill(SECRET, timeout=SOON)
    desk.get_by_test_id("stFormSubmitButton").get_by_role("button").click()


def test_a_lesson_with_two_students(sit: Callable[..., Seat], chromium: Browser, app: str) -> None:
    desk = sit("desk").page
    second_desk, laptop = desk.context.new_page(), desk.context.new_page()
    with chromium.new_context(viewport=PHONE, is_mobile=True, has_touch=True, reduced_motion="reduce") as pocket:
        phone = pocket.new_page()
        unlock(desk)
        button(desk, "desk open").click(timeout=SOON)
        code = key(desk, "desk-code").inner_text(timeout=SOON).strip()
        assert SECRET not in desk.url
        picture = desk.locator("img.desk-qr")
        assert eventually(desk, lambda: picture.evaluate("image => image.naturalWidth") > 50)

        for page in (laptop, phone):
            page.goto(f"{app}/tokens?class={code}")
            expect(key(page, "class-head")).to_contain_text(code, timeout=SOON)
        names = [key(page, "class-head").inner_text() for page in (laptop, phone)]
        assert names[0] != names[1]
        expect(desk.get_by_test_id("stMetricValue").first).to_have_text("2", timeout=SOON)

        second_desk.goto(f"{app}/desk")
        unlock(second_desk)
        button(second_desk, f"desk run {code}").click(timeout=SOON)
        expect(button(second_desk, "desk ask")).to_be_visible(timeout=SOON)
        hand = Hand(desk)
        hand.write(key(desk, "desk-prompt-choice").locator("textarea"), "Which token is read twice?")
        hand.write(key(desk, "desk-options").locator("textarea"), "the\ncat")
        button(desk, "desk ask").click()
        expect(button(second_desk, "desk show_answers")).to_be_visible(timeout=SOON)
        expect(button(second_desk, "desk ask")).to_have_count(0, timeout=SOON)  # its form is gone, without a click
        for page, option in ((laptop, "the"), (phone, "cat")):
            key(page, "class-options").get_by_text(option, exact=True).click(timeout=SOON)
            button(page, "class send").click()
            expect(button(page, "class change")).to_be_visible(timeout=SOON)
        button(desk, "desk show_answers").click(timeout=SOON)
        expect(desk.locator("ol.answers li")).to_have_text(["A the1 · 50%", "B cat1 · 50%"], timeout=SOON)
        phone.reload()  # a phone that has slept is the same student, with the answer that it gave
        expect(key(phone, "class-head")).to_contain_text(names[1].split(" ·")[0].splitlines()[0], timeout=SOON)
        expect(button(phone, "class change")).to_be_visible(timeout=SOON)

        # Everybody to a view, while somebody is typing.
        desk.locator("a[href*='/attention']").first.click()
        expect(button(desk, "class everybody")).to_be_visible(timeout=SOON)
        Hand(laptop).write(sentence_box(laptop), OWN)
        size = desk.get_by_role("heading", level=1).evaluate("title => getComputedStyle(title).fontSize")
        button(desk, "class everybody").click()
        laptop.keyboard.type("swim.", delay=KEY)
        for page in (laptop, phone):
            page.wait_for_url("**/attention*", timeout=SOON)
        expect(desk.get_by_role("heading", level=1)).to_have_css("font-size", size)  # the page keeps its style sheet
        expect(sentence_box(laptop)).to_have_value(sentence_box(desk).input_value(), timeout=SOON)
        button(laptop, "class own").click()
        laptop.wait_for_url("**/tokens*", timeout=SOON)
        expect(sentence_box(laptop)).to_have_value(f"{OWN}swim.", timeout=SOON)

        # Nothing is left after the end.
        desk.locator(".st-key-class-bar a").click()
        button(desk, "desk end").click(timeout=SOON)
        button(desk, "desk end now").click()
        for page in (laptop, phone):
            page.wait_for_url(lambda url: "class=" not in url, timeout=SOON)
            expect(page.get_by_test_id("stAlert").first).to_be_visible(timeout=SOON)
