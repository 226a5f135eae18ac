"""A newcomer's walk: from the first screen through all pages by the navigation, with every kind of checkpoint.

On the way axe-core looks for what shuts people out, and what is fetched shows which drawing libraries a page needs.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Page, expect

from tests.browser.axe import findings
from tests.browser.conftest import ROOT, open_page, settle
from tests.browser.seats import Seat
from tests.browser.test_shell import address
from ui.shell.navigation import GROUPS, Entry

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


# Streamlit's own files; each drags more of them along. Plotly's is 5 MB, 1.4 MB compressed. A page that comes to need
# one, or no longer does, is entered here.
PLOTLY, VEGA = "PlotlyChart", "ArrowVegaLiteChart"
NEEDS = {
    PLOTLY: {"tokens", "embeddings", "positions", "add_norm", "feed_forward", "decoding", "lens", "bugs"},
    VEGA: {"training"},
}
# What is marked in the sidebar, by the name of the choice: no mark is an empty text.
MARKED = """() => Object.fromEntries([...document.querySelectorAll("[data-testid=stSidebar] [role=radiogroup]")]
  .map((group) => [group.ariaLabel, [...group.querySelectorAll("[aria-checked=true]")].map((one) => one.innerText)]))"""
AT_REST = 400  # milliseconds; fading in would count as too little contrast


def walk(page: Page, sentence: str, look: Callable[[Entry], None] = lambda entry: None) -> None:
    """``look``: what else is looked at on each page."""
    for entry in PAGES:
        open_page(page, entry.title)
        expect(page.get_by_role("heading", name=entry.title, exact=True, level=1)).to_be_visible()
        settle(page)
        expect(page.get_by_test_id("stSidebar").get_by_role("textbox").first).to_have_value(sentence)
        marked, asked = page.evaluate(MARKED), address(page)
        for name in {"Layer", "Head"} & marked.keys():
            assert marked[name] == [asked.get(name.lower(), "0")], f"{entry.title} marks {marked}"
        assert all(len(marked[name]) == 1 for name in {"Attention", "Stack"} & marked.keys()), (
            f"{entry.title}: {marked}"
        )
        wrong = page.locator("[data-testid=stAlertContentError]").all_inner_texts()
        assert not wrong, f"{entry.title}: {wrong}"
        drawn = page.locator(DRAWINGS).filter(visible=True).first
        expect(drawn, f"{entry.title} draws nothing").to_be_visible()
        look(entry)


def test_all_nine_pages_are_there() -> None:
    assert all(entry.exists for entry in FOLLOW) and len(FOLLOW) == 9


def test_no_page_has_a_serious_finding_light_or_dark(app: str, visit: Callable[..., Page]) -> None:
    sentence, problems = "We went to the sea.", []
    page = visit(f"{app}/?checkpoint=tiny-translator&sentence={sentence}")

    def look(entry: Entry) -> None:
        for theme in ("light", "dark"):
            page.emulate_media(color_scheme=theme)
            page.wait_for_timeout(AT_REST)
            settle(page)
            problems.extend(f"{entry.title}, {theme}: {line}" for line in findings(page))
        page.emulate_media(color_scheme="light")

    walk(page, sentence, look)
    assert not problems, "\n".join(problems)


@pytest.mark.parametrize("name", ["tiny-gpt", "tiny-bert", "tiny-sentiment"])
def test_every_page_opens_for_every_kind_of_model(app: str, visit: Callable[..., Page], name: str) -> None:
    sentence = "We went to the sea."
    walk(visit(f"{app}/?checkpoint={name}&sentence={sentence}"), sentence)


def test_a_page_loads_only_the_drawing_library_that_it_needs(shipped: str, sit: Callable[..., Seat]) -> None:
    """What a page fetches when it is the first one. Of the checkpoints that ship: the tests' own have no training
    curves to draw."""
    seat, loaded = sit(f"{shipped}/?checkpoint=en-fr"), {}

    def look(entry: Entry) -> None:
        seat.requests.clear()
        seat.page.reload()
        seat.page.locator("h1").first.wait_for()
        settle(seat.page)
        seat.page.wait_for_load_state("networkidle")
        fetched = {urlsplit(url).path.rpartition("/")[2].split(".")[0] for url in seat.requests}
        loaded[entry.name] = {library for library in NEEDS if library in fetched}

    walk(seat.page, "The cat sat on the mat.", look)
    needed = {entry.name: {library for library, pages in NEEDS.items() if entry.name in pages} for entry in PAGES}
    assert loaded == needed


@pytest.mark.parametrize(
    ("name", "width", "dark"),
    [
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
