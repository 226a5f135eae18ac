"""What goes over the wire, and how soon a click is painted, against the goals.

    python -m benchmarks.wire [--rounds 5] [--grid-only]

In a real Chromium: the bytes of a grid of all heads; a page that runs again with nothing changed; hovering, switching
heads, moving with the keys and stepping; and a click on the grid beside the same grid as Plotly's subplots.
"""

import argparse
import json
import statistics
import sys
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from playwright.sync_api import Browser, Page

from benchmarks.app_server import ENTRIES, AppServer
from benchmarks.chromium import Tab, chromium, new_visitor
from benchmarks.counting_proxy import CountingProxy

ROUNDS = 5
GRIDS = {(6, 8, 32): 60_000, (12, 12, 64): 600_000}  # layers, heads, tokens → bytes at most
RERUN = 2_000  # bytes at most
FASTER = 10.0  # times at least
STEPS = 5
PAGES = {"Overview": "", "Attention": "attention", "Heads": "heads"}
# Where the mouse went down, until the drawing shows the head that was chosen then and the browser has painted it.
_CLOCK = """() => {
    window.clicked = null;
    addEventListener("pointerdown", () => { window.clicked = performance.now(); }, {capture: true, once: true});
}"""
_PLOTLY = "() => document.querySelector('.js-plotly-plot .gtitle')?.textContent"
# Around the corner of the first few tiles: one of them gets its outline and one loses it. All pixels would take long.
_CANVAS = """() => {
    const find = (root) => root.querySelector("canvas[data-geometry]") ??
        [...root.querySelectorAll("*")].map((e) => e.shadowRoot && find(e.shadowRoot)).find(Boolean);
    const canvas = window.canvas?.isConnected ? window.canvas : (window.canvas = find(document));
    const ratio = canvas.width / canvas.clientWidth;
    const [x, y, width] = JSON.parse(canvas.dataset.geometry).tiles[0];
    const [place, long] = [(y + 20) * ratio, (x + 8 * width) * ratio].map(Math.round);
    return String(canvas.getContext("2d").getImageData(0, place, long, 1).data);
}"""
_PAINTED = """([look, before]) => new Promise((done) => {
    const state = eval(look);
    const wait = () => state() !== before
        ? requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now() - window.clicked)))
        : requestAnimationFrame(wait);
    wait();
})"""


@dataclass(frozen=True)
class Row:
    """One line of the result; a goal is a most, or with ``at_least`` a least."""

    what: str
    value: float
    unit: str
    goal: float | None = None
    at_least: bool = False

    @property
    def met(self) -> bool:
        return self.goal is None or (self.value >= self.goal if self.at_least else self.value <= self.goal)

    def __str__(self) -> str:
        value = f"{self.value:,.1f}" if self.unit == "times" else f"{self.value:,.0f}"
        line = f"  {self.what:<72}{value:>12} {self.unit:<9}"
        if self.goal is None:
            return line.rstrip()
        return f"{line}goal {'≥' if self.at_least else '≤'} {self.goal:,.0f}: {'met' if self.met else 'MISSED'}"


def grids(browser: Browser, base: str, *, rounds: int, clicked: Collection[tuple[int, int, int]]) -> list[Row]:
    """The message that carries a grid, labels included, as Streamlit sends it (the script has come in one before), and
    the time from a click until another head is outlined, of those that are ``clicked``; both drawings take turns.

    On the canvas, the head itself is clicked. A heatmap of Plotly tells Python nothing of a click: a button stands in.
    """
    sizes, clicks = [], []
    for (layers, heads, tokens), goal in GRIDS.items():
        grid = f"{layers} × {heads} heads, {tokens} tokens"
        seconds: dict[str, list[float]] = {"canvas": [], "plotly": []}
        with new_visitor(browser) as context:
            tabs = {}
            for drawing in seconds if (layers, heads, tokens) in clicked else ("canvas",):
                tabs[drawing] = tab = Tab(context)
                address = f"{base}/?drawing={drawing}&layers={layers}&heads={heads}&tokens={tokens}"
                tab.open(address, figure=".js-plotly-plot .gtitle" if drawing == "plotly" else "")
            sizes.append(Row(f"grid of {grid}, random weights", max(tabs["canvas"].received), "bytes", goal))
            if len(tabs) == 1:
                continue
            for _ in range(rounds + 1):
                for drawing, tab in tabs.items():
                    tab.page.bring_to_front()
                    seconds[drawing].append(_click_button(tab.page) if drawing == "plotly" else _click_head(tab.page))
                    tab.settle()
        kept = {drawing: times[1:] for drawing, times in seconds.items()}  # the first only warms up
        ratios = [slow / fast for slow, fast in zip(kept["plotly"], kept["canvas"], strict=True)]
        clicks += [
            *(Row(f"{grid}: click → painted, {d}", statistics.median(t), "ms") for d, t in kept.items()),
            Row(f"{grid}: Plotly ÷ canvas", statistics.median(ratios), "times", FASTER, at_least=True),
        ]
    return [*sizes, *clicks]


def _click_button(page: Page) -> float:
    return _painted(page, page.get_by_role("button", name="Next head").click, look=_PLOTLY)


def _click_head(page: Page) -> float:
    """One of the first heads that is not chosen: the pointer rests on it before it is clicked, as a hand does."""
    place, box = _geometry(page)
    chosen = int(page.locator("text=/^chosen \\d/").inner_text().split()[-1])
    x, y, width, height = place["tiles"][1 + chosen % 3]
    page.mouse.move(box["x"] + x + width / 2, box["y"] + y + height / 2)
    page.wait_for_timeout(200)
    return _painted(page, lambda: (page.mouse.down(), page.mouse.up()), look=_CANVAS)


def _painted(page: Page, click: Callable[[], object], *, look: str) -> float:
    """Milliseconds from the click until what ``look`` sees has changed and is painted."""
    before = page.evaluate(look)
    page.evaluate(_CLOCK)
    click()
    return page.evaluate(_PAINTED, [look, before])


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


def measure(
    *, rounds: int, grid_only: bool = False, clicked: Collection[tuple[int, int, int]] = tuple(GRIDS)
) -> list[Row]:
    """Measure and print; returns the rows that were printed. ``clicked``: the grids that Plotly draws, too, which takes
    a minute for the large one."""
    rows: list[Row] = []

    def show(title: str, found: list[Row]) -> None:
        print(f"\n{title}", *found, sep="\n", flush=True)
        rows.extend(found)

    with chromium() as browser:
        with AppServer(script="benchmarks/grid_app.py") as server:
            show(
                "All heads on one screen, and a click on it",
                grids(browser, server.base, rounds=rounds, clicked=clicked),
            )
        if grid_only:
            return rows
        for entry in ENTRIES:
            with AppServer(entry) as server:
                goal = RERUN if entry == "deploy.serve" else None
                found = reruns(browser, server.port, entry, goal=goal)
                show(f"A page runs again with nothing changed, {entry}", found)
                if entry == "deploy.serve":
                    show("Looking around", [*silent(browser, server.base), *stepping(browser, server.port)])
    return rows


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.wire", description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="clicks on each grid")
    parser.add_argument("--grid-only", action="store_true", help="leave the app's pages out")
    options = parser.parse_args(arguments)
    if options.rounds < 1:
        parser.error(f"--rounds is {options.rounds}; at least 1 is needed")
    measure(rounds=options.rounds, grid_only=options.grid_only)
    return 0


if __name__ == "__main__":
    sys.exit(main())
