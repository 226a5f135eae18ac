"""A scene of ``canvas_harness.py`` in a tab: what is painted, sent to Python, and transferred."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from playwright.sync_api import FloatRect, Locator

from tests.browser.seats import Seat, Seats

FIND_CANVAS = """[...document.querySelectorAll("*")].map((e) => e.shadowRoot?.querySelector("canvas")).find(Boolean)"""

_WAITS = itertools.count()
# State of the drawing (at most two frames late), the tooltip and all positions; each wait counts anew.
_AT_REST = f"""(wait) => {{
    const canvas = {FIND_CANVAS};
    if (!canvas) return false;
    const tip = canvas.getRootNode().querySelector(".tip");
    const now = [canvas.dataset.geometry, canvas.width, canvas.clientWidth, tip?.hidden, tip?.textContent, wait].join();
    const rested = window.seenBefore === now;
    window.framesAtRest = rested ? window.framesAtRest + 1 : 0;
    window.seenBefore = now;
    return window.framesAtRest >= 5;
}}"""

# What an input event changes is painted in the next frame, however late that comes.
_NEXT_FRAMES = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
_PAINTED = f"""async (canvas) => {{
    for (let before = "", at = 0; canvas.isConnected; at += 1) {{
        await {_NEXT_FRAMES};
        const {{ x, y, width, height }} = canvas.getBoundingClientRect();
        const now = JSON.stringify([canvas.dataset.geometry, {{ x, y, width, height }}]);
        if (canvas.dataset.geometry && (now === before || at > 60)) return now;
        if (at > 1800) throw new Error("the canvas stays empty");
        before = now;
    }}
}}"""


def painted(canvas: Locator) -> tuple[dict, FloatRect]:
    """Return the geometry of a canvas and its box on the page, once both are still or long in motion."""
    while (found := canvas.evaluate(_PAINTED)) is None:  # the canvas was replaced meanwhile
        pass
    geometry, box = json.loads(found)
    return json.loads(geometry), box


class Canvas:
    """One scene of the harness in one browser tab, with everything that was transferred."""

    def __init__(self, seat: Seat, url: str) -> None:
        self.page, self.sent = seat.page, seat.sent
        self.page.goto(url)
        self.page.wait_for_selector("canvas[data-geometry]", timeout=60_000)
        self.page.wait_for_function("() => document.fonts.status === 'loaded'")
        self.rest()

    def rest(self) -> None:
        """Wait until drawing, tooltip and positions have been unchanged for some frames."""
        self.page.wait_for_function(_AT_REST, arg=next(_WAITS), polling="raf")

    @property
    def geometry(self) -> dict:
        self._next_frames()
        return json.loads(self.page.get_attribute("canvas[data-geometry]", "data-geometry"))

    def at(self, x: float, y: float) -> tuple[float, float]:
        """Convert a position on the canvas to a position on the page."""
        box = self.page.locator("canvas[data-geometry]").bounding_box()
        return box["x"] + x, box["y"] + y

    def cell(self, row: int, column: int) -> tuple[float, float]:
        place = self.geometry
        return place["x"] + (column + 0.5) * place["stepX"], place["y"] + (row + 0.5) * place["stepY"]

    def hover(self, x: float, y: float) -> str:
        self.page.mouse.move(*self.at(x, y))
        self.rest()
        return self.tip()

    def tip(self) -> str:
        self._next_frames()
        tip = self.page.locator(".tip")
        return tip.inner_text() if tip.is_visible() else ""

    def pixel(self, x: float, y: float) -> tuple[int, ...]:
        return self.pixels([(x, y)])[0]

    def pixels(self, places: Sequence[tuple[float, float]]) -> list[tuple[int, ...]]:
        """Return the colours (red, green, blue, alpha) at these places in the next frame."""
        read = f"""async (places) => {{
            await {_NEXT_FRAMES};
            const canvas = {FIND_CANVAS};
            const ratio = canvas.width / canvas.clientWidth;
            const pen = canvas.getContext("2d");
            return places.map(([x, y]) =>
                [...pen.getImageData(Math.round(x * ratio), Math.round(y * ratio), 1, 1).data]);
        }}"""
        return [tuple(colour) for colour in self.page.evaluate(read, [list(place) for place in places])]

    def live(self) -> str:
        """Return what a screen reader is told, in the next frame."""
        self._next_frames()
        return self.page.locator(".live").inner_text()

    def _next_frames(self) -> None:
        self.page.evaluate(f"() => {_NEXT_FRAMES}")

    def colours(self) -> int:
        """Return the number of different colours on the canvas; 1 if it is blank."""
        count = f"""async () => {{
            await {_NEXT_FRAMES};
            const canvas = {FIND_CANVAS};
            const data = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
            return new Set(new Uint32Array(data.buffer)).size;
        }}"""
        return self.page.evaluate(count)

    def says(self, text: str) -> None:
        """Wait until the page shows a text that Python wrote."""
        self.page.get_by_text(text, exact=True).wait_for(timeout=60_000)


@contextmanager
def opened(
    seats: Seats, url: str, *, width: int = 1440, height: int = 1000, dark: bool = False, ratio: float = 1
) -> Iterator[Canvas]:
    """Open a scene in a tab of its own; at the end, check that there were no errors."""
    with seats.taken(width=width, height=height, dark=dark, ratio=ratio) as seat:
        yield Canvas(seat, url)
