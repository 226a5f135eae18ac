"""The glossary in a browser: from a page to a term, to its example and back; former links."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.browser.axe import lasting
from tests.browser.conftest import eventually, settle
from tests.browser.test_shell import address
from ui.words.glossary_terms import glossary
from ui.words.texts import common, page_text

pytestmark = pytest.mark.browser


def entries(page: Page) -> list[str]:
    keys = page.locator("[class*='st-key-term-']").evaluate_all("nodes => nodes.map((node) => node.className)")
    return [part.removeprefix("st-key-term-") for names in keys for part in names.split() if "st-key-term-" in part]


def test_from_a_page_to_a_term_to_its_example_and_back(shipped: str, visit: Callable[..., Page]) -> None:
    page = visit(f"{shipped}/masks?checkpoint=gpt-en&sentence=The%20dog%20sleeps.", width=1280, height=720)
    page.locator(".st-key-glossary").get_by_role("button").click()
    assert eventually(page, lambda: entries(page), [term.key.replace("_", "-") for term in glossary("masks")])

    box = page.get_by_role("textbox", name=common("glossary.search"))
    box.fill("attention sink")
    box.press("Enter")
    assert eventually(page, lambda: entries(page)[:1], ["sink"])
    assert not lasting(page)

    before = address(page)
    page.locator(".st-key-show-sink").get_by_role("button").click()
    settle(page)
    assert address(page) != before
    page.go_back()
    expect(page.get_by_role("heading", name=page_text("masks").title, exact=True, level=1)).to_be_visible()
    settle(page)
    assert address(page)["sentence"] == "The dog sleeps."


def test_a_link_to_a_term_opens_the_panel(shipped: str, visit: Callable[..., Page]) -> None:
    page = visit(f"{shipped}/glossary?glossary_search=Sink&sentence=The%20dog%20sleeps.", width=390, height=800)
    expect(page.get_by_role("heading", name=page_text("overview").title, exact=True, level=1)).to_be_visible()
    assert eventually(page, lambda: entries(page)[:1], ["sink"])
    assert address(page)["sentence"] == "The dog sleeps."
    assert page.evaluate("document.documentElement.scrollWidth") <= 390, "nothing is wider than a phone"
