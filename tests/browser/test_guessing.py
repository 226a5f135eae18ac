"""Guessing in a real Chromium: where a token attends, which token comes next, which bug a case has.

Nightly. Every run clicks a guess on each of the three pages (tests/browser/test_consequences.py), and covers the rest
without a browser (tests/pages: test_attention_guess.py, test_decoding.py, test_bugs.py).
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import settle
from ui.words.texts import page_text

pytestmark = [pytest.mark.browser, pytest.mark.nightly]
PLACE = "checkpoint=tiny-translator&sentence=The+old+man+told+us+a+story."
ATTENTION, DECODING = page_text("attention"), page_text("decoding")


def press(page: Page, name: str) -> None:
    page.get_by_test_id("stMain").get_by_role("button", name=name, exact=True).click()
    settle(page)


def test_attention_is_painted_before_it_is_shown(app: str, visit: Callable[..., Page]) -> None:
    page = visit(f"{app}/attention?{PLACE}&layer=1&head=1&token=2")
    settle(page)
    expect(page.locator("canvas[data-geometry]").first).to_be_visible()
    page.get_by_text(ATTENTION["guess"], exact=True).click()
    settle(page)
    expect(page.locator("canvas[data-geometry]")).to_have_count(0)
    expect(page.get_by_test_id("stMetric")).to_have_count(0)
    assert "attention_guess=true" in page.url
    page.get_by_test_id("stMain").get_by_test_id("stButtonGroup").get_by_role("button").nth(1).click()
    settle(page)
    press(page, ATTENTION["guess_reveal"])
    expect(page.get_by_text("Overlap", exact=False).first).to_be_visible()
    expect(page.locator("canvas[data-geometry]").first).to_be_visible()  # the map shows the rows guessed so far
    press(page, ATTENTION["guess_next"])
    assert "token=3" in page.url
    expect(
        page.get_by_test_id("stMain").get_by_role("button", name=ATTENTION["guess_reveal"], exact=True)
    ).to_be_disabled()


def test_the_next_word_is_picked_before_it_is_shown(app: str, visit: Callable[..., Page]) -> None:
    page = visit(f"{app}/decoding?{PLACE}&guess=true")
    settle(page)
    options = page.locator(".st-key-guess-options").get_by_role("button")
    expect(options.first).to_be_enabled()
    assert page.locator(".js-plotly-plot").count() == 0
    for step in (1, 2):
        options.nth(0).click()
        settle(page)
        expect(options.first).to_be_disabled()
        expect(page.locator(".js-plotly-plot").first).to_be_visible()
        expect(page.get_by_text(f"of {step}", exact=False).first).to_be_visible()
        press(page, DECODING["guess_next"])
        assert page.locator(".js-plotly-plot:visible").count() == 0


def test_a_case_is_guessed_and_explained(app: str, visit: Callable[..., Page]) -> None:
    page = visit(f"{app}/bugs?{PLACE}&patient=0")  # a link of the former page
    settle(page)
    expect(page.locator("canvas[data-geometry]")).to_have_count(2)
    table = page.get_by_test_id("stDataFrame")
    expect(table).to_have_count(0)
    page.locator(".st-key-guess-scale button").click()
    settle(page)
    expect(table).to_have_count(1)
    page.locator(".st-key-another-patient button").click()
    settle(page)
    assert "patient=1" in page.url
    expect(table).to_have_count(0)
    other = visit(page.url)  # the link for a class
    settle(other)
    expect(other.get_by_role("spinbutton")).to_have_value("1")
