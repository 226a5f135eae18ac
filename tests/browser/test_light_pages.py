"""Which pages load the large drawing libraries: only those whose own figures need them, found by what is fetched."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser

from tests.browser.conftest import ROOT, settle
from ui.shell.navigation import GROUPS

pytestmark = pytest.mark.browser

# Streamlit's own files; each drags more of them along. Plotly's is 5 MB, 1.4 MB compressed.
PLOTLY, VEGA = "PlotlyChart", "ArrowVegaLiteChart"
NEEDS = {
    PLOTLY: {"tokens", "embeddings", "positions", "add_norm", "feed_forward", "decoding", "lens", "bugs"},
    VEGA: {"training"},
}
PAGES = [entry.name for group in GROUPS.values() for entry in group if entry.exists]


@pytest.fixture(scope="module")
def shipped(start_app: Callable[..., str]) -> str:
    """The app with the checkpoints of the repository: the tests' own have no training curves to draw."""
    return start_app(ROOT / "checkpoints")


@pytest.mark.parametrize("name", PAGES)
def test_a_page_loads_only_the_drawing_library_that_it_needs(shipped: str, chromium: Browser, name: str) -> None:
    """A page that comes to need one, or no longer does, is entered above."""
    fetched = []
    with chromium.new_context(viewport={"width": 1440, "height": 900}) as context:
        page = context.new_page()
        page.on("request", lambda request: fetched.append(urlsplit(request.url).path.rpartition("/")[2].split(".")[0]))
        page.goto(f"{shipped}/{'' if name == PAGES[0] else name}")
        page.locator("h1").first.wait_for()
        settle(page)
        page.wait_for_load_state("networkidle")
    loaded = {library for library in NEEDS if library in fetched}
    assert loaded == {library for library, pages in NEEDS.items() if name in pages}
