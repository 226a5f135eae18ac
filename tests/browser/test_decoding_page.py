"""Decoding in a real browser: the stepper moves with keys, buttons and tokens, at once, and is in the address."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import settle

pytestmark = pytest.mark.browser
SENTENCE = "The old man told us a story."


def count(page: Page) -> Locator:
    return page.locator(".stepper .count")


def current(page: Page) -> Locator:
    return page.locator(".stepper [aria-current=step]")


def sentence_about(page: Page) -> str:
    return page.get_by_test_id("stMarkdown").filter(has_text=" comes ").first.inner_text()


def step_in_address(page: Page) -> str:
    return parse_qs(urlsplit(page.url).query).get("step", ["0"])[-1]


@pytest.fixture
def decoding(app: str, visit: Callable[..., Page]) -> Page:
    page = visit(f"{app}/decoding?{urlencode({'checkpoint': 'tiny-translator', 'sentence': SENTENCE})}")
    expect(count(page)).to_contain_text("step 1 of")
    return page


def test_arrow_keys_walk_through_the_answer_and_back(decoding: Page) -> None:
    total = int(count(decoding).inner_text().split()[-1])
    said = [sentence_about(decoding)]
    for step in (2, 3):
        decoding.keyboard.press("ArrowRight")
        expect(count(decoding)).to_have_text(f"step {step} of {total}")
        settle(decoding)
        said.append(sentence_about(decoding))
        expect(current(decoding)).to_have_text(said[-1].split(" comes ")[1].split(",")[0])
    assert len(set(said)) == 3
    assert step_in_address(decoding) == "2"
    decoding.keyboard.press("ArrowLeft")
    settle(decoding)
    assert sentence_about(decoding) == said[1]
    decoding.keyboard.press("End")
    settle(decoding)
    expect(count(decoding)).to_have_text(f"step {total} of {total}")
    expect(decoding.get_by_role("button", name="one step on")).to_be_disabled()
    decoding.keyboard.press("ArrowRight")  # there is nothing behind the end
    decoding.keyboard.press("Home")
    settle(decoding)
    assert sentence_about(decoding) == said[0]
    expect(decoding.get_by_role("button", name="one step back")).to_be_disabled()


def test_many_quick_moves_end_where_they_should(decoding: Page) -> None:
    for _ in range(6):
        decoding.keyboard.press("ArrowRight")
    expect(count(decoding)).to_contain_text("step 7 of")  # at once, before Python has drawn anything
    settle(decoding)
    decoding.wait_for_function("() => location.search.includes('step=6')")
    settle(decoding)
    expect(count(decoding)).to_contain_text("step 7 of")
    expect(current(decoding)).to_have_text(sentence_about(decoding).split(" comes ")[1].split(",")[0])


def test_buttons_and_tokens_move_too(decoding: Page) -> None:
    decoding.get_by_role("button", name="one step on").click()
    settle(decoding)
    assert step_in_address(decoding) == "1"
    decoding.locator(".stepper .line button").nth(4).click()
    settle(decoding)
    expect(count(decoding)).to_contain_text("step 5 of")
    assert step_in_address(decoding) == "4"


def test_arrow_keys_in_a_text_box_stay_there(decoding: Page) -> None:
    box = decoding.get_by_role("textbox", name="Sentence")
    box.click()
    box.press("ArrowRight")
    box.press("ArrowRight")
    settle(decoding)
    expect(count(decoding)).to_contain_text("step 1 of")


def test_a_copied_address_opens_at_the_same_step(decoding: Page, visit: Callable[..., Page]) -> None:
    decoding.get_by_role("radio", name="sampling").click()
    settle(decoding)
    # Away from the switch, which has arrow keys of its own.
    decoding.get_by_role("heading", name="Decoding").click()
    decoding.keyboard.press("ArrowRight")
    settle(decoding)
    assert step_in_address(decoding) == "1"
    other = visit(decoding.url)
    expect(count(other)).to_contain_text("step 2 of")
    assert sentence_about(other) == sentence_about(decoding)
    assert "drawn with a chance" in sentence_about(other)


def test_another_sentence_begins_at_its_first_step(decoding: Page) -> None:
    decoding.keyboard.press("ArrowRight")
    box = decoding.get_by_role("textbox", name="Sentence")
    box.fill("It is raining, so take your umbrella.")
    box.press("Control+Enter")
    settle(decoding)
    expect(count(decoding)).to_contain_text("step 1 of")
