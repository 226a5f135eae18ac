"""A newcomer's walk: from the first screen through all pages by the navigation, with every kind of checkpoint."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import ROOT, settle
from ui.shell.navigation import GROUPS

pytestmark = pytest.mark.browser
PAGES = [entry for group in GROUPS.values() for entry in group if entry.exists]
FOLLOW = GROUPS["follow"]
# What a page can draw, or the one line that says why it has nothing to show; a lesson to start.
DRAWINGS = ", ".join(
    (
        ".js-plotly-plot",
        "canvas",
        "svg.marks",
        "[data-testid=stMetric]",
        "[data-testid=stAlertContentInfo]",
        "[class*=st-key-start-]",
    )
)
SHIPPED = ROOT / "checkpoints"


def walk(page: Page, sentence: str) -> None:
    for entry in PAGES:
        page.get_by_test_id("stSidebarNav").get_by_role("link", name=entry.title, exact=True).click()
        expect(page.get_by_role("heading", name=entry.title, exact=True, level=1)).to_be_visible()
        settle(page)
        expect(page.get_by_test_id("stSidebar").get_by_role("textbox").first).to_have_value(sentence)
        wrong = page.locator("[data-testid=stAlertContentError]").all_inner_texts()
        assert not wrong, f"{entry.title}: {wrong}"
        drawn = page.locator(DRAWINGS).filter(visible=True).first
        expect(drawn, f"{entry.title} draws nothing").to_be_visible()


@pytest.fixture(scope="module")
def shipped(start_app: Callable[..., str]) -> str:
    """The address of the app with the checkpoints of the repository."""
    return start_app(SHIPPED)


def test_all_nine_pages_are_there() -> None:
    assert all(entry.exists for entry in FOLLOW) and len(FOLLOW) == 9


@pytest.mark.parametrize("name", ["tiny-translator", "tiny-gpt", "tiny-bert", "tiny-sentiment"])
def test_every_page_opens_for_every_kind_of_model(app: str, visit: Callable[..., Page], name: str) -> None:
    sentence = "We went to the sea."
    walk(visit(f"{app}/?checkpoint={name}&sentence={sentence}"), sentence)


@pytest.mark.parametrize(
    ("name", "width", "dark"),
    [
        ("en-fr", 1440, False),
        ("gpt-en", 800, True),
        ("bert-en", 1440, True),
        ("sentiment", 800, False),
        ("captions-en-de", 800, False),
    ],
)
def test_the_shipped_checkpoints_go_through_all_pages(
    shipped: str, visit: Callable[..., Page], name: str, width: int, dark: bool
) -> None:
    sentence = "The cat sat on the mat."
    walk(visit(f"{shipped}/?checkpoint={name}", width=width, dark=dark), sentence)


@pytest.mark.parametrize("path", sorted(SHIPPED.iterdir()), ids=lambda path: path.name)
def test_every_shipped_checkpoint_has_its_card_and_curves(path: Path) -> None:
    for file in ("config.json", "model.safetensors", "tokenizer.json", "README.md", "history.csv"):
        assert (path / file).is_file(), f"{path.name} lacks {file}"
