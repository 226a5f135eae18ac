"""The first screen: the share of the main figure that every page shows without scrolling.

    python -m benchmarks.first_screen [--only attention,heads] [--checkpoint en-fr]

In a real Chromium, for the first example: on a projector (1280 × 720), light and dark, and on a smaller screen (1024 ×
768), in both languages; with twenty tokens; and during a presentation. Prints a table in Markdown.
"""

import argparse
import sys
from collections.abc import Iterable, Iterator

from playwright.sync_api import Page

from harness.app_server import AppServer
from harness.chromium import Tab, chromium, new_visitor
from harness.main_figure import PATIENCE, TWENTY, visible_share
from ui.shell.navigation import GROUPS

WIDE, NARROW = {"width": 1280, "height": 720}, {"width": 1024, "height": 768}
WITHOUT_A_FIGURE = ("lessons", "glossary", "checkpoint")
PAGES = [entry.name for group in GROUPS.values() for entry in group if entry.name not in WITHOUT_A_FIGURE]
COLUMNS = (
    *("en, 1280 × 720", "dark", "en, 1024 × 768", "fr, 1280 × 720", "fr, 1024 × 768"),
    *("20 tokens", "20 tokens, fr, dark", "presenter", "presenter, fr"),
)
_AT_REST, _MAX_LOOKS = 500, 40  # milliseconds between two checks, and their number


def stable_share(page: Page) -> float:
    """Return ``visible_share`` once it is stable: a figure may appear later than its page."""
    seen = [visible_share(page)]
    while len(seen) < _MAX_LOOKS and (len(seen) < 4 or len(set(seen[-4:])) > 1):
        page.wait_for_timeout(_AT_REST)
        seen.append(visible_share(page))
    return seen[-1]


def shares(tab: Tab, base: str, name: str, checkpoint: str) -> Iterator[float]:
    """Yield the shares of one page, in the order of ``COLUMNS``."""
    page, path = tab.page, "" if name == PAGES[0] else name

    def opened(query: str, *, dark: bool = False) -> float:
        page.set_viewport_size(WIDE)
        page.emulate_media(color_scheme="dark" if dark else "light")
        page.goto(f"{base}/{path}?checkpoint={checkpoint}&{query}", timeout=PATIENCE)
        page.locator("h1").first.wait_for(timeout=PATIENCE)
        tab.settle()
        return stable_share(page)

    def narrow() -> float:
        page.set_viewport_size(NARROW)
        return stable_share(page)

    yield opened("language=en")
    page.emulate_media(color_scheme="dark")
    yield stable_share(page)
    yield narrow()
    yield opened("language=fr")
    yield narrow()
    yield opened(f"language=en&sentence={TWENTY}")
    yield opened(f"language=fr&sentence={TWENTY}", dark=True)
    yield opened("language=en&presenter=1")
    yield opened("language=fr&presenter=1")


def table(rows: Iterable[tuple[str, Iterable[float]]]) -> Iterator[str]:
    """Yield the lines of a table in Markdown, each as soon as it is measured."""
    yield f"| page | {' | '.join(COLUMNS)} |"
    yield f"|---|{'---|' * len(COLUMNS)}"
    for name, found in rows:
        yield f"| {name} | {' | '.join(f'{100 * one:.0f} %' for one in found)} |"


def main(arguments: list[str] | None = None) -> int:
    """Print the table and return 0."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="names of pages, with commas between them; default: all")
    parser.add_argument("--checkpoint", default="en-fr")
    asked = parser.parse_args(arguments)
    names = [name for name in PAGES if not asked.only or name in asked.only.split(",")]
    with AppServer("streamlit run") as server, chromium() as browser, new_visitor(browser) as context:
        tab = Tab(context)
        for line in table((name, shares(tab, server.base, name, asked.checkpoint)) for name in names):
            print(line, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
