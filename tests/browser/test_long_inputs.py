"""256 tokens in a real browser: the heaviest pages answer, their maps zoom and pan, and little of them is elements."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Page, expect

import transformer
from benchmarks.long_inputs import SHORT, Tab, long_sentence
from tests.browser.conftest import settle
from tests.browser.seats import Seats
from tests.conftest import ROOT

pytestmark = [pytest.mark.browser, pytest.mark.slow]
SOON = 60_000  # milliseconds
FOLDER = ROOT / "checkpoints"
MAX_ELEMENTS = 6000
# One page of each kind of drawing …
HEAVIEST = [
    ("positions", "Token + position"),
    ("attention", ""),
    ("decoding", "Word alignment"),
    ("training", "One step in detail"),
    ("tokens", ""),
]
# … and those that draw with the same library.
others = pytest.mark.skipif(
    os.environ.get("GLASSFORMER_LONG") != "1", reason="a minute of pages like those above: GLASSFORMER_LONG=1"
)
ALIKE = [
    ("embeddings", ""),
    ("heads", "how sharp each row is"),
    ("add_norm", "What each sub-layer adds"),
    ("feed_forward", "All tokens"),
]
READ = [
    pytest.param(page, view, id=f"{page} {view}".strip(), marks=marks)
    for pages, marks in ((HEAVIEST, ()), (ALIKE, others))
    for page, view in pages
]


@pytest.fixture(scope="module")
def sentence() -> str:
    return long_sentence(transformer.load(FOLDER / "en-fr"))


@pytest.fixture
def tab(seats: Seats, shipped: str) -> Iterator[Callable[[str], Tab]]:
    asked = urlencode({"checkpoint": "en-fr", "sentence": SHORT})
    with seats.taken() as seat:
        yield lambda page: Tab(seat.page, f"{shipped}/{page}?{asked}")


@pytest.mark.parametrize(("page", "view"), READ)
def test_the_tab_answers(tab: Callable[[str], Tab], sentence: str, page: str, view: str) -> None:
    opened = tab(page)
    if view:  # what it draws with is loaded before
        opened.choose(view)
        opened.settle()
    found = opened.measure(view, lambda: opened.type_sentence(sentence))
    assert not found.problem
    assert found.elements < MAX_ELEMENTS, found
    # It still does what one asks for: another sentence.
    again = opened.measure(view, lambda: opened.type_sentence("The dog sleeps under the table."))
    assert again.kilobytes > 1 and not again.problem


def axis_labels(page: Page) -> list[str]:
    return page.locator("[data-testid=stPlotlyChart] .xtick text").evaluate_all(
        "texts => texts.map(text => text.textContent)"
    )


def test_a_long_axis_shows_more_names_when_one_zooms_in(
    visit: Callable[..., Page], shipped: str, sentence: str
) -> None:
    page = visit(f"{shipped}/heads?{urlencode({'checkpoint': 'en-fr', 'sentence': sentence})}")
    page.get_by_role("radio", name="how sharp each row is").click()
    settle(page)
    plot = page.locator("[data-testid=stPlotlyChart] .nsewdrag").first
    expect(plot).to_be_visible(timeout=SOON)
    before = axis_labels(page)
    assert 15 < len(before) <= 45
    box = plot.bounding_box()
    page.mouse.move(box["x"] + 0.50 * box["width"], box["y"] + 5)
    page.mouse.down()
    page.mouse.move(box["x"] + 0.54 * box["width"], box["y"] + 5, steps=5)
    page.mouse.up()
    page.wait_for_timeout(800)
    after = axis_labels(page)
    # A twenty-fifth of 256 tokens: each of them has its name now.
    assert 8 <= len(after) <= 12
    words = transformer.trace(transformer.load(FOLDER / "en-fr"), sentence).source.displays
    assert " ".join(after) in " ".join(words)


def test_the_map_zooms_and_pans(visit: Callable[..., Page], shipped: str, sentence: str) -> None:
    page = visit(f"{shipped}/attention?{urlencode({'checkpoint': 'en-fr', 'sentence': sentence})}")
    canvas = page.locator("canvas").first
    expect(canvas).to_be_visible(timeout=SOON)
    canvas.scroll_into_view_if_needed()
    before = canvas.screenshot()
    for _ in range(2):
        page.get_by_role("button", name="Zoom in").first.click()
    page.wait_for_timeout(500)
    zoomed = canvas.screenshot()
    assert zoomed != before
    box = canvas.bounding_box()
    page.mouse.move(box["x"] + 500, box["y"] + 300)
    page.mouse.down()
    page.mouse.move(box["x"] + 350, box["y"] + 250, steps=5)
    page.mouse.up()
    page.wait_for_timeout(500)
    assert canvas.screenshot() != zoomed
