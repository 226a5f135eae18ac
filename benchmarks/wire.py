"""What goes over the wire, against the goals.

    python -m benchmarks.wire [--entry deploy.serve]

In a real Chromium: a page that runs again with nothing changed; hovering, switching heads, moving with the keys and
stepping.
"""

import argparse
import json
import sys
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from playwright.sync_api import Browser, Page

from benchmarks.app_server import ENTRIES, AppServer
from benchmarks.chromium import Tab, chromium, new_visitor
from benchmarks.counting_proxy import CountingProxy

RERUN = 2_000  # bytes at most
STEPS = 5
PAGES = {"Overview": "", "Attention": "attention", "Heads": "heads"}


@dataclass(frozen=True)
class Row:
    """One line of the result; a goal is a most."""

    what: str
    value: float
    unit: str
    goal: float | None = None

    @property
    def met(self) -> bool:
        return self.goal is None or self.value <= self.goal

    def __str__(self) -> str:
        line = f"  {self.what:<72}{self.value:>12,.0f} {self.unit:<9}"
        if self.goal is None:
            return line.rstrip()
        return f"{line}goal ≤ {self.goal:,.0f}: {'met' if self.met else 'MISSED'}"


def reruns(browser: Browser, port: int, entry: str, *, goal: float | None) -> list[Row]:
    """The pages of the app run again by Streamlit's own key, and by a click on what is chosen already."""
    rows = []
    with CountingProxy("127.0.0.1", port) as wire:
        for name, page in PAGES.items():
            with new_visitor(browser) as context:
                tab = Tab(context)
                tab.open(f"{wire.base}/{page}")
                found = []
                for _ in range(3):
                    _forget(tab, wire)
                    tab.page.locator("h1").first.click()
                    tab.page.keyboard.press("r")
                    _rest(tab)
                    found.append((wire.received, sum(tab.received)))
                rows.append(Row(f"{entry}: {name}, unchanged, first time", found[0][0], "bytes"))
                rows.append(Row(f"{entry}: {name}, unchanged, every further time", found[-1][0], "bytes", goal))
                rows.append(Row(f"{entry}: {name}, unchanged, unpacked", found[-1][1], "bytes"))
                if name == "Attention":
                    for _ in range(2):  # after the first the session knows that a click was made
                        _forget(tab, wire)
                        tab.page.locator(".strip .token[aria-pressed=true]").click()
                        _rest(tab)
                    rows.append(Row(f"{entry}: {name}, click on the chosen token", wire.received, "bytes", goal))
    return rows


def silent(browser: Browser, base: str) -> list[Row]:
    """Messages in either direction while somebody looks around."""
    rows = []
    for what, page, act, figure in (
        ("hovering 20 cells of a map", "attention", _hover_map, ""),
        ("moving over a map with the arrow keys", "attention", _keys, ""),
        ("hovering the tiles of the grid", "heads", _hover_grid, ""),
        ("switching heads in the drawing with lines", "attention?attention_show=Lines", _switch_heads, ""),
    ):
        with new_visitor(browser) as context:
            tab = Tab(context)
            tab.open(f"{base}/{page}", figure=figure)
            tab.forget()
            act(tab.page)
            _rest(tab)
            rows.append(Row(what, len(tab.sent) + len(tab.received), "messages", 0))
            if tab.received:
                rows.append(Row(f"{what}, unpacked", sum(tab.received), "bytes"))
    return rows


def stepping(browser: Browser, port: int) -> list[Row]:
    """Messages while somebody steps through a decoded text, and what the sections below cost once the reader rests."""
    with CountingProxy("127.0.0.1", port) as wire, new_visitor(browser) as context:
        tab = Tab(context)
        tab.open(f"{wire.base}/decoding", figure=".js-plotly-plot .main-svg")
        _rest(tab)
        _forget(tab, wire)
        tab.page.locator("h1").first.click()
        for _ in range(STEPS):
            tab.page.keyboard.press("ArrowRight")
            tab.page.wait_for_timeout(100)
        found = [
            Row(f"{STEPS} steps in a row through a decoded text", len(tab.sent) + len(tab.received), "messages", 0)
        ]
        shown = json.loads(tab.page.locator("canvas[data-geometry]").first.get_attribute("data-geometry"))["step"]
        if shown != STEPS:
            raise RuntimeError(f"after {STEPS} steps the drawing shows step {shown}; nothing was measured")
        tab.page.wait_for_timeout(1000)  # charts/canvas/source/drawings/walk.js tells Python after 0.8 s
        _rest(tab)
        what = "… and then the reader rests: the sections below follow"
        found.append(Row(what, len(tab.sent) + len(tab.received), "messages"))
        found.append(Row(f"{what}, compressed", wire.received, "bytes"))
        return found


def _hover_map(page: Page) -> None:
    place, box = _geometry(page)
    for cell in range(20):
        x, y = place["x"] + (cell % 5 + 0.5) * place["stepX"], place["y"] + (cell // 5 + 0.5) * place["stepY"]
        page.mouse.move(box["x"] + x, box["y"] + y)
        page.wait_for_timeout(30)


def _hover_grid(page: Page) -> None:
    place, box = _geometry(page)
    for x, y, width, height in place["tiles"]:
        page.mouse.move(box["x"] + x + width / 2, box["y"] + y + height / 2)
        page.wait_for_timeout(20)


def _keys(page: Page) -> None:
    page.locator("canvas[data-geometry]").first.focus()
    for key in ("ArrowRight", "ArrowRight", "ArrowDown", "ArrowDown", "ArrowLeft"):
        page.keyboard.press(key)


def _switch_heads(page: Page) -> None:
    page.get_by_role("button", name="Hide all heads").click()
    for head in range(3):
        page.get_by_role("button", name=f"head {head}", exact=True).click()


def _geometry(page: Page) -> tuple[dict, dict]:
    canvas = page.locator("canvas[data-geometry]").first
    canvas.scroll_into_view_if_needed()
    return json.loads(canvas.get_attribute("data-geometry")), canvas.bounding_box()


def _forget(tab: Tab, wire: CountingProxy) -> None:
    tab.forget()
    wire.forget()


def _rest(tab: Tab) -> None:
    tab.page.wait_for_timeout(400)
    tab.settle()


def measure(entries: Collection[str] = tuple(ENTRIES)) -> list[Row]:
    """Measure and print; returns the rows that were printed. ``entries``: the ways to start the app."""
    rows: list[Row] = []

    def show(title: str, found: list[Row]) -> None:
        print(f"\n{title}", *found, sep="\n", flush=True)
        rows.extend(found)

    with chromium() as browser:
        for entry in entries:
            with AppServer(entry) as server:
                goal = RERUN if entry == "deploy.serve" else None
                found = reruns(browser, server.port, entry, goal=goal)
                show(f"A page runs again with nothing changed, {entry}", found)
                if entry == "deploy.serve":
                    show("Looking around", [*silent(browser, server.base), *stepping(browser, server.port)])
    return rows


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.wire", description=__doc__.split("\n")[0])
    parser.add_argument("--entry", choices=sorted(ENTRIES), help="one way to start the server (default: both)")
    entry = parser.parse_args(arguments).entry
    measure([entry] if entry else tuple(ENTRIES))
    return 0


if __name__ == "__main__":
    sys.exit(main())
