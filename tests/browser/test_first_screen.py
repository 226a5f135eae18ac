"""What a projector shows before anybody scrolls: the main figure of every page, and what one chooses with."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import settle
from ui.shell.navigation import GROUPS

pytestmark = pytest.mark.browser
PAGES = [entry.name for group in GROUPS.values() for entry in group if entry.name not in ("lessons", "checkpoint")]
LONG = "The old man who lives near the river told us a long story about his brother yesterday."
# Of the first figure in the page, shadow roots included: the share of its height that is in the window.
_SEEN = """() => {
  const large = (node) => {
    const box = node.getBoundingClientRect();
    return node.checkVisibility() && box.width > 250 && box.height > 110;
  };
  const figures = [];
  const walk = (node) => {
    if (node.matches?.("canvas, .js-plotly-plot, svg.marks, .diagram, .chips") && large(node)) figures.push(node);
    else for (const child of [...(node.shadowRoot?.children ?? []), ...(node.children ?? [])]) walk(child);
  };
  walk(document.querySelector("[data-testid=stMain]"));
  if (!figures.length) return null;
  const box = figures[0].getBoundingClientRect();
  const inside = Math.min(innerHeight, box.bottom) - Math.max(0, box.top);
  return Math.max(0, inside) / box.height;
}"""
# The lower edges of what the sidebar offers to choose from, down to the heads.
_EDGES = """() => [...document.querySelectorAll("[data-testid=stSidebar] [class*=st-key-sidebar-checkpoint],"
  + "[data-testid=stSidebar] [class*=st-key-sidebar-sentence], [data-testid=stSidebar] [class*=st-key-choose]")]
  .map((node) => node.getBoundingClientRect().bottom)"""


def shares(page: Page, base: str, names: list[str], query: str) -> dict[str, float | None]:
    """How much of its main figure each page shows."""
    found = {}
    for name in names:
        page.goto(f"{base}/{'' if name == 'overview' else name}{query}")
        settle(page)
        page.wait_for_function(f"({_SEEN})() !== null")
        found[name] = page.evaluate(_SEEN)
    return found


@pytest.mark.parametrize(
    ("width", "height", "dark", "language", "least"),
    [(1280, 720, False, "en", 0.99), (1280, 720, True, "fr", 0.95), (1024, 768, False, "en", 0.8)],
)
def test_the_main_figure_is_on_the_first_screen(
    shipped: str, visit: Callable[..., Page], width: int, height: int, dark: bool, language: str, least: float
) -> None:
    query = f"?language={language}"
    page = visit(f"{shipped}/{query}", width=width, height=height, dark=dark)
    found = shares(page, shipped, PAGES, query)
    assert not {name: round(share, 2) for name, share in found.items() if share < least}


def test_a_map_of_twenty_tokens_fits_as_well(shipped: str, visit: Callable[..., Page]) -> None:
    query = f"?sentence={LONG}"
    page = visit(f"{shipped}/{query}", width=1280, height=720)
    found = shares(page, shipped, ["attention", "heads", "masks"], query)
    assert not {name: round(share, 2) for name, share in found.items() if share < 0.95}


def test_checkpoint_sentence_kind_layer_and_head_need_no_scrolling(shipped: str, visit: Callable[..., Page]) -> None:
    page = visit(f"{shipped}/attention", width=1280, height=720)
    edges = page.evaluate(_EDGES)
    assert len(edges) >= 5 and max(edges) <= 720


def test_while_somebody_presents_the_figures_end_in_the_window(shipped: str, visit: Callable[..., Page]) -> None:
    page = visit(f"{shipped}/?presenter=1", width=1280, height=720)
    found = shares(page, shipped, ["overview", "heads", "compare", "attention", "masks", "surgery"], "?presenter=1")
    assert not {name: round(share, 2) for name, share in found.items() if share < 0.99}
    expect(page.get_by_test_id("stSidebar")).not_to_be_in_viewport()


def test_while_somebody_presents_the_map_fills_the_window(shipped: str, visit: Callable[..., Page]) -> None:
    plain = visit(f"{shipped}/attention", width=1280, height=720)
    canvas = "[data-testid=stMain] canvas"
    width = plain.locator(canvas).filter(visible=True).first.bounding_box()["width"]
    large = visit(f"{shipped}/attention?presenter=1", width=1280, height=720)
    box = large.locator(canvas).filter(visible=True).first.bounding_box()
    assert box["width"] > width and box["y"] + box["height"] <= 720
