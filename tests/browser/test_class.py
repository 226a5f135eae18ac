"""A class in the browser: two instructors and two students, one at a laptop and one at a phone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import eventually
from tests.browser.hand import KEY, Hand
from tests.harness.app_server import AppServer
from ui.words.texts import common, page_text

pytestmark = [pytest.mark.browser, pytest.mark.slow]
TEXT = page_text("desk")
SECRET = "maple-otter-47"
SOON = 60_000  # milliseconds
# Whether a code of the widest letters fits on one line; the page then has its own code again.
_WIDEST = """(line) => {
    const code = line.textContent;
    line.textContent = "WWWWWW";
    const fits = line.scrollWidth <= line.parentElement.clientWidth && line.getClientRects().length === 1
        && line.clientHeight < 2 * parseFloat(getComputedStyle(line).fontSize);
    line.textContent = code;
    return fits;
}"""
OWN = "We went to the sea, and "


@pytest.fixture(scope="module")
def class_server(checkpoints_folder: Path) -> Iterator[str]:
    environment = {
        "GLASSFORMER_CHECKPOINTS": str(checkpoints_folder),
        "GLASSFORMER_INSTRUCTOR": SECRET,
        "OMP_NUM_THREADS": "1",
    }
    with AppServer("deploy.serve", environment=environment) as server:
        yield f"http://127.0.0.1:{server.port}"


def button(page: Page, key: str):
    return page.locator(f".st-key-{key.replace(' ', '-')} button")


def sentence(page: Page):
    return page.get_by_role("textbox", name=common("sentence.name"), exact=True)


def _unlock(desk: Page, server: str) -> None:
    desk.goto(f"{server}/desk")
    desk.locator("input[type=password]").fill(SECRET, timeout=SOON)
    desk.get_by_role("button", name=TEXT["unlock"]).click()


def test_a_lesson_with_two_students(class_server: str, chromium: Browser) -> None:
    phone_size = {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True}
    contexts = [*(chromium.new_context() for _ in range(3)), chromium.new_context(**phone_size)]
    desk, second_desk, laptop, phone = (context.new_page() for context in contexts)
    try:
        _unlock(desk, class_server)
        button(desk, "desk open").click(timeout=SOON)
        code = desk.locator(".st-key-desk-code").inner_text(timeout=SOON).strip()
        assert SECRET not in desk.url
        assert desk.locator(".st-key-desk-code p").evaluate(_WIDEST), "the widest code is on one line of its column"
        picture = desk.locator("img.desk-qr")
        expect(picture).to_be_visible(timeout=SOON)
        assert eventually(desk, lambda: picture.evaluate("image => image.naturalWidth") > 50, True)

        laptop.goto(f"{class_server}/tokens?class={code}")
        phone.goto(f"{class_server}/tokens?class={code}")
        heads = [page.locator(".st-key-class-head") for page in (laptop, phone)]
        for head in heads:
            expect(head).to_contain_text(code, timeout=SOON)
        names = [head.inner_text() for head in heads]
        assert names[0] != names[1]
        expect(desk.get_by_test_id("stMetricValue").first).to_have_text("2", timeout=SOON)

        _unlock(second_desk, class_server)
        button(second_desk, f"desk run {code}").click(timeout=SOON)
        expect(button(second_desk, "desk ask")).to_be_visible(timeout=SOON)

        hand = Hand(desk)
        hand.write(desk.locator(".st-key-desk-prompt-choice textarea"), "Which token is read twice?")
        hand.write(desk.locator(".st-key-desk-options textarea"), "the\ncat")
        button(desk, "desk ask").click()
        expect(button(second_desk, "desk show_answers")).to_be_visible(timeout=SOON)
        expect(button(second_desk, "desk ask")).to_have_count(0, timeout=SOON)  # its form is gone, without a click
        for page, option in ((laptop, "the"), (phone, "cat")):
            page.locator(".st-key-class-options").get_by_text(option, exact=True).click(timeout=SOON)
            button(page, "class send").click()
            expect(button(page, "class change")).to_be_visible(timeout=SOON)
        button(desk, "desk show_answers").click(timeout=SOON)
        expect(desk.locator("ol.answers li")).to_have_text(["A the1 · 50%", "B cat1 · 50%"], timeout=SOON)

        # A phone that has slept is the same student, with the answer that it gave.
        phone.reload()
        expect(phone.locator(".st-key-class-head")).to_contain_text(
            names[1].splitlines()[0].split(" ·")[0], timeout=SOON
        )
        expect(button(phone, "class change")).to_be_visible(timeout=SOON)

        # Everybody to a view, while somebody is typing.
        desk.get_by_role("link", name="Attention").first.click()
        expect(button(desk, "class everybody")).to_be_visible(timeout=SOON)
        Hand(laptop).write(sentence(laptop), OWN)
        size = desk.get_by_role("heading", level=1).evaluate("title => getComputedStyle(title).fontSize")
        button(desk, "class everybody").click()
        expect(desk.get_by_text(common("class.shown"))).to_be_visible(timeout=SOON)
        expect(desk.get_by_role("heading", level=1)).to_have_css("font-size", size)  # the page keeps its style sheet
        laptop.keyboard.type("swim.", delay=KEY)
        for page in (laptop, phone):
            page.wait_for_url("**/attention*", timeout=SOON)
        expect(sentence(laptop)).to_have_value(sentence(desk).input_value(), timeout=SOON)
        button(laptop, "class own").click()
        laptop.wait_for_url("**/tokens*", timeout=SOON)
        expect(sentence(laptop)).to_have_value(f"{OWN}swim.", timeout=SOON)

        # Nothing is left after the end.
        desk.locator(".st-key-class-bar a").click()
        desk.get_by_role("button", name=TEXT["end"]).first.click(timeout=SOON)
        button(desk, "desk end now").click()
        expect(desk.get_by_text(TEXT["ended"])).to_be_visible(timeout=SOON)
        for page in (laptop, phone):
            expect(page.get_by_text(common("class.ended"))).to_be_visible(timeout=SOON)
            page.wait_for_url(lambda url: "class=" not in url, timeout=SOON)
    finally:
        for context in contexts:
            context.close()
