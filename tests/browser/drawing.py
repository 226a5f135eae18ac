"""A drawing of the canvas on a page or in a frame: where its parts are, and what is said about them."""

from __future__ import annotations

import json

from playwright.sync_api import Frame, Locator, Page

# What an input event changes is painted in the next frame, however late that comes.
_FRAMES = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
_PAINTED = f"""async (canvas) => {{
    for (let before = "", at = 0; canvas.isConnected; at += 1) {{
        await {_FRAMES};
        const {{ x, y, width, height }} = canvas.getBoundingClientRect();
        const now = JSON.stringify([canvas.dataset.geometry, {{ x, y, width, height }}]);
        if (canvas.dataset.geometry && (now === before || at > 60)) return now;
        if (at > 1800) throw new Error("the canvas stays empty");
        before = now;
    }}
}}"""


class Drawing:
    """The first visible drawing within ``place``, a page, a frame or an element."""

    def __init__(self, place: Page | Frame | Locator) -> None:
        self.canvas = place.locator("canvas[data-geometry]").filter(visible=True).first
        self.page = place if isinstance(place, Page) else place.page
        self._tip = place.locator(".tip")

    def painted(self) -> tuple[dict, dict]:
        """Return the geometry and the box in its window, once both are still or long in motion."""
        while (found := self.canvas.evaluate(_PAINTED)) is None:  # the canvas was replaced meanwhile
            pass
        geometry, box = json.loads(found)
        return json.loads(geometry), box

    @property
    def state(self) -> dict:
        return self.painted()[0]

    def cell(self, row: int, column: int, *inside: object) -> tuple[float, float]:
        """Return the middle of a cell on the canvas; ``inside`` steps into the geometry, e.g. ("large", 0)."""
        place = self.state
        for name in inside:
            place = place[name]
        return place["x"] + (column + 0.5) * place["stepX"], place["y"] + (row + 0.5) * place["stepY"]

    def hover(self, at: tuple[float, float]) -> str:
        """Point at a place of the canvas, and return what the tooltip says."""
        self.canvas.hover(position={"x": at[0], "y": at[1]})
        self.canvas.evaluate(f"() => {_FRAMES}")
        return self._tip.first.inner_text() if self._tip.first.is_visible() else ""

    def click(self, at: tuple[float, float]) -> None:
        self.canvas.click(position={"x": at[0], "y": at[1]})

    def drag(self, start: tuple[float, float], end: tuple[float, float]) -> None:
        self.canvas.hover(position={"x": start[0], "y": start[1]})
        self.page.mouse.down()
        box = self.canvas.bounding_box()
        self.page.mouse.move(box["x"] + end[0], box["y"] + end[1], steps=3)  # fast: the mouse skips cells
        self.page.mouse.up()

    def press(self, *keys: str) -> None:
        self.canvas.focus()
        for one in keys:
            self.page.keyboard.press(one)
        self.canvas.evaluate(f"() => {_FRAMES}")

    def pixels(self) -> str:
        return self.canvas.evaluate("canvas => canvas.toDataURL()")
