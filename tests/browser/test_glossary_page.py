"""The glossary in a browser: from a page to its terms, a search, and back from an example."""

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
TEXT = page_text("glossary")
ALL = common("page.glossary_all")


def entries(page: Page) -> list[str]:
    keys = page.locator("[class*='st-key-term-']").evaluate_all("nodes => nodes.map((node) => node.className)")
    return [part.removeprefix("st-key-term-") for names in keys for part in names.split() if "st-key-term-" in part]


def test_from_a_page_to_its_terms_to_an_example_and_back(shipped: str, visit: Callable[..., Page]) -> None:
    page = visit(f"{shipped}/masks?checkpoint=gpt-en&sentence=The%20dog%20sleeps.", width=1280, height=720)
    page.get_by_role("button", name=common("page.glossary"), exact=False).first.click()
    page.get_by_role("button", name=ALL).click()
    expect(page.get_by_role("heading", name=TEXT.title, exact=True, level=1)).to_be_visible()
    settle(page)
    assert eventually(page, lambda: entries(page), [term.key.replace("_", "-") for term in glossary("masks")])
    assert address(page)["glossary_page"] == "masks"

    box = page.get_by_role("textbox", name=TEXT["search"])
    box.fill("padding")
    box.press("Enter")
    settle(page)
    assert eventually(page, lambda: entries(page)[:1], ["padding"])
    assert not lasting(page)

    page.locator(".st-key-show-padding").get_by_role("button").click()
    expect(page.get_by_role("heading", name=page_text("masks").title, exact=True, level=1)).to_be_visible()
    settle(page)
    assert address(page)["masks view"] == "padding" and address(page)["sentence"] == "The dog sleeps."

    page.go_back()
    expect(page.get_by_role("heading", name=TEXT.title, exact=True, level=1)).to_be_visible()
    settle(page)
    assert address(page)["glossary_search"] == "padding"
    assert eventually(page, lambda: entries(page)[:1], ["padding"])


def test_a_term_in_what_to_look_for_leads_to_its_entry(shipped: str, visit: Callable[..., Page]) -> None:
    page = visit(f"{shipped}/attention", width=1280, height=720)
    page.locator(".st-key-look-for summary").click()
    link = page.get_by_test_id("stExpanderDetails").get_by_role("link").first
    term = next(term for term in glossary("attention") if link.get_attribute("title") == term.definition)
    with page.context.expect_page() as opened:  # in a tab of its own, so that the page stays
        link.click()
    settle(opened.value)
    assert entries(opened.value)[0] == term.key.replace("_", "-")
    opened.value.set_viewport_size({"width": 390, "height": 800})
    width = opened.value.evaluate("document.documentElement.scrollWidth")
    assert width <= 390, "nothing is wider than a phone"
