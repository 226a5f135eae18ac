"""A page keeps only the name of a figure; if the store has dropped it, the page draws it again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import settle

pytestmark = pytest.mark.browser


def test_a_figure_that_was_dropped_is_made_again(
    start_app: Callable[..., str], visit: Callable[..., Page], tmp_path: Path
) -> None:
    page = visit(start_app(tmp_path, script=Path(__file__).with_name("dropped_figures_harness.py")))
    expect(page.get_by_text("run 1", exact=True)).to_be_visible()
    page.locator("[class*=st-key-more-of-] button").first.click()
    expect(page.get_by_text("CSV", exact=True).first).to_be_visible()
    settle(page)
    expect(page.get_by_text("run 2", exact=True)).to_be_visible()
    page.get_by_text("Table", exact=True).click()
    expect(page.get_by_test_id("stDataFrame")).to_be_visible()
    settle(page)
    expect(page.get_by_text("run 3", exact=True)).to_be_visible()
