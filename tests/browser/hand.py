"""A simulated hand: a mouse move takes a quarter of a second, a press a tenth; keys follow in turn."""

from __future__ import annotations

from contextlib import suppress

from playwright.sync_api import Error, FloatRect, Locator, Page, expect

KEY = 55  # milliseconds between two keys
PRESS = 90  # milliseconds that the button is down
_LOOKS = 20
_STEPS, _STEP = 15, 16  # steps of a mouse move, and milliseconds per step
# Whether the whole element is clickable, i.e. not scrolled out of a list.
_IN_SIGHT = """node => {
    const box = node.getBoundingClientRect(), root = node.getRootNode();
    return [box.top + 2, box.bottom - 2].every((y) => node.contains(root.elementFromPoint(box.x + box.width / 2, y)));
}"""
_UNDER = """(nodes, [x, y]) => nodes.findIndex(
    (node) => node.isConnected && node.contains(node.getRootNode().elementFromPoint(x, y)))"""


class Hand:
    """One hand, which remembers the position of its mouse."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self._at = (640.0, 400.0)

    def click(self, what: Locator, *, press: int = PRESS) -> None:
        """Click where ``what`` was when the mouse started, because people do not correct their aim on the way."""
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
        """Return which of ``things`` is under the mouse now; they may have moved since the mouse started."""
        found = things.evaluate_all(_UNDER, self._at)
        return None if found < 0 else found

    def _aim(self, what: Locator) -> FloatRect:
        """Return the position of an element, looking again if it is being redrawn."""
        for _ in range(_LOOKS):
            expect(what).to_be_visible()
            with suppress(Error):
                if not what.evaluate(_IN_SIGHT):
                    what.scroll_into_view_if_needed(timeout=2_000)
                if box := what.bounding_box():
                    return box
        raise AssertionError(f"{what} does not stand still")

    def write(self, box: Locator, text: str) -> None:
        """Replace the existing text by a new one."""
        self.click(box)
        self.page.keyboard.press("Control+a")
        self.page.keyboard.type(text, delay=KEY)
