"""A person at the page: a mouse that takes a quarter of a second, a press of a tenth, keys one after the other."""

from __future__ import annotations

from contextlib import suppress

from playwright.sync_api import Error, FloatRect, Locator, Page, expect

KEY = 55  # milliseconds between two keys
PRESS = 90  # milliseconds that the button is down
_LOOKS = 20
_STEPS, _STEP = 15, 16  # of the mouse's way, and milliseconds each
# Whether all of it can be clicked: no part around it, a list say, has scrolled it away.
_IN_SIGHT = """node => {
    const box = node.getBoundingClientRect(), root = node.getRootNode();
    return [box.top + 2, box.bottom - 2].every((y) => node.contains(root.elementFromPoint(box.x + box.width / 2, y)));
}"""
_UNDER = """(nodes, [x, y]) => nodes.findIndex(
    (node) => node.isConnected && node.contains(node.getRootNode().elementFromPoint(x, y)))"""


class Hand:
    """One hand, which remembers where its mouse is."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self._at = (640.0, 400.0)

    def click(self, what: Locator, *, press: int = PRESS) -> None:
        """Where ``what`` stood when the mouse set off: nobody aims anew on the way."""
        self.reach(what)
        self.press(press)

    def reach(self, what: Locator) -> None:
        box = self._aim(what)
        begin, end = self._at, (box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        for step in range(1, _STEPS + 1):
            self.page.mouse.move(*(a + (b - a) * step / _STEPS for a, b in zip(begin, end, strict=True)))
            self.page.wait_for_timeout(_STEP)
        self._at = end

    def press(self, milliseconds: int = PRESS) -> None:
        self.page.mouse.down()
        self.page.wait_for_timeout(milliseconds)
        self.page.mouse.up()

    def lies_on(self, things: Locator) -> int | None:
        """Which of ``things`` is under the mouse now; they may have moved since it set off."""
        found = things.evaluate_all(_UNDER, self._at)
        return None if found < 0 else found

    def _aim(self, what: Locator) -> FloatRect:
        """Where it stands. What is drawn anew in this moment is looked for again: nobody sets off to what is gone."""
        for _ in range(_LOOKS):
            expect(what).to_be_visible()
            with suppress(Error):
                if not what.evaluate(_IN_SIGHT):
                    what.scroll_into_view_if_needed(timeout=2_000)
                if box := what.bounding_box():
                    return box
        raise AssertionError(f"{what} does not stand still")

    def write(self, box: Locator, text: str) -> None:
        """In the place of what stands there."""
        self.click(box)
        self.page.keyboard.press("Control+a")
        self.page.keyboard.type(text, delay=KEY)
