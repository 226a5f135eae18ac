"""A real Chromium that detects when a page's main figure is drawn, and when the page is idle."""

import json
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, BrowserContext, Page, WebSocket, sync_playwright

# Debian's two, the cheaper one first: without invisible windows and menus, a page costs a quarter less.
EXECUTABLES = ("chromium-headless-shell", "chromium")
ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
PATIENCE = 180.0  # seconds
CALM = 0.6  # seconds without any change after which a page is idle
# Records when the page's main figure has been drawn: the app's diagram has blocks of some size, or its first canvas has
# more than one colour. The clock starts with the navigation.
_WATCH = """
(() => {
  const inside = function* (root) {
    yield root;
    for (const element of root.querySelectorAll("*")) if (element.shadowRoot) yield* inside(element.shadowRoot);
  };
  const find = (selector) => {
    for (const root of inside(document)) { const found = root.querySelector(selector); if (found) return found; }
    return null;
  };
  const painted = (canvas) => {
    if (!canvas?.width || !canvas.height) return false;
    const pixels = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
    return new Set(new Uint32Array(pixels.buffer)).size > 20;
  };
  const look = () => {
    const block = find(OTHER || ".diagram .block")?.getBoundingClientRect();
    const figure = block ? block.width > 10 : painted(find("canvas[data-geometry]"));
    if (!figure) return setTimeout(look, 10);
    requestAnimationFrame(() => requestAnimationFrame(() => { window.firstPicture = performance.now(); }));
  };
  look();
})();
"""
STATE = """() => document.querySelector("[data-testid=stSkeleton]") ? "waiting"
    : document.querySelector("[data-testid=stApp]")?.dataset.testScriptState"""


class Tab:
    """One tab, which records when something last arrived on its WebSocket."""

    def __init__(self, context: BrowserContext) -> None:
        self.page: Page = context.new_page()
        self._changed = time.monotonic()
        self.page.on("websocket", self._listen)

    def open(self, address: str, *, figure: str = "") -> float:
        """Open a page, wait until it is idle, and return the milliseconds until its main figure was drawn.

        ``figure`` is a selector of another figure than the app's diagram or a canvas.
        """
        self.page.add_init_script(_WATCH.replace("OTHER", json.dumps(figure)))
        self.page.goto(address, timeout=1000 * PATIENCE)  # a busy machine starts a server slowly
        self.page.wait_for_function("() => window.firstPicture", timeout=1000 * PATIENCE)
        self.settle()
        return self.page.evaluate("window.firstPicture")

    def settle(self) -> None:
        """Wait until the script has ended and nothing has arrived for a while."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() - self._changed < CALM:
            if time.monotonic() > end:
                raise TimeoutError(f"{self.page.url} was still busy after {PATIENCE:.0f} s")
            if self.page.evaluate(STATE) != "notRunning":
                self._changed = time.monotonic()
            self.page.wait_for_timeout(50)

    def _listen(self, socket: WebSocket) -> None:
        for event in ("framereceived", "framesent"):
            socket.on(event, self._hear)

    def _hear(self, _: str | bytes) -> None:
        self._changed = time.monotonic()


@contextmanager
def chromium() -> Iterator[Browser]:
    """Yield a browser.

    Raises:
        RuntimeError: If there is no Chromium.
    """
    executable = next(filter(None, map(shutil.which, EXECUTABLES)), None)
    if executable is None:
        raise RuntimeError(
            f"there is no {' and no '.join(EXECUTABLES)} on this machine; install Debian's with: "
            f"apt-get install {EXECUTABLES[0]}"
        )
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=list(ARGUMENTS))
        yield browser
        browser.close()


def new_visitor(browser: Browser) -> BrowserContext:
    """Return the context of a first-time visitor: empty cache, no cookies, a window of 1440 × 900."""
    return browser.new_context(viewport={"width": 1440, "height": 900})
