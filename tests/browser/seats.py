"""Warm tabs of one Chromium: reopening the app in a used tab takes half the time.

A test gets an empty tab with the requested width and theme. It records errors and transfers until it is returned; then
its storage is cleared and its session on the server ends.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

from playwright.sync_api import Browser, ConsoleMessage, Error, Page, Request, WebSocket

MAX_USES = 60  # after that many tests the tab is closed, so that leaks in Chromium stay small
MAX_FREE = 4  # tabs kept for the next test; a test uses at most four
PATIENCE = 120_000  # milliseconds; a busy machine may be slow
# A page that is opened by its address requests these below that address first; `streamlit run` answers 404 by design.
_PROBES = ("/_stcore/health", "/_stcore/host-config")
# When the page last sent something to the server, and when it last received something.
_LISTEN = """() => {
    const send = WebSocket.prototype.send, known = new WeakSet();
    WebSocket.prototype.send = function (data) {
        window.askedAt = performance.now();
        if (!known.has(this)) this.addEventListener("message", () => { window.heardAt = performance.now(); });
        known.add(this);
        return send.call(this, data);
    };
}"""


class Seat:
    """One tab.

    Attributes:
        problems: Errors on its page.
        requests: Addresses that it requested.
        sent: Lengths of the WebSocket frames that it sent.
        received: Lengths of the WebSocket frames that it received.
    """

    def __init__(self, browser: Browser, ratio: float) -> None:
        self.ratio, self.uses = ratio, 0
        self.problems: list[str] = []
        self.requests: list[str] = []
        self.sent: list[int] = []
        self.received: list[int] = []
        # Chromium renders without a graphics card here: animations would take a third of the processor.
        self.context = browser.new_context(accept_downloads=True, device_scale_factor=ratio, reduced_motion="reduce")
        self.context.set_default_timeout(PATIENCE)
        self.context.add_init_script(f"({_LISTEN})()")
        self.page: Page = self.context.new_page()
        self.page.on("pageerror", lambda error: self.problems.append(f"page error: {error}"))
        self.page.on("console", self._hear)
        self.page.on("request", self._ask)
        self.page.on("websocket", self._listen)

    def prepare(self, *, width: int, height: int, dark: bool) -> None:
        """Prepare the tab for the next test: empty records, and a window of this size and theme."""
        self.uses += 1
        self.problems.clear()
        self.requests.clear()
        self.forget_frames()
        self.page.set_viewport_size({"width": width, "height": height})
        self.page.emulate_media(color_scheme="dark" if dark else "light")

    def forget_frames(self) -> None:
        self.sent.clear()
        self.received.clear()

    def found(self) -> list[str]:
        """Return all problems so far, including an exception on the page."""
        shown = self.page.get_by_test_id("stException").all_inner_texts()
        return [*self.problems, *(f"exception shown: {text}" for text in shown)]

    def empty(self) -> bool:
        """Leave the page and clear its storage; return False if the tab cannot be reused."""
        try:
            if self.uses >= MAX_USES or self.context.pages != [self.page]:
                return False
            self.context.set_offline(False)
            if self.page.url.startswith("http"):
                self.page.evaluate("() => { localStorage.clear(); sessionStorage.clear(); }")
            self.page.goto("about:blank")  # leave full screen, too
            self.page.mouse.move(0, 0)
            self.context.clear_cookies()
        except Error:  # the tab was closed by the test, or it crashed
            return False
        return True

    def _hear(self, message: ConsoleMessage) -> None:
        source = urlsplit((message.location or {}).get("url", "")).path
        if message.type == "error" and not source.endswith(_PROBES):
            self.problems.append(f"console error: {message.text} ({source})")

    def _ask(self, request: Request) -> None:
        self.requests.append(request.url)
        address = urlsplit(request.url.removeprefix("blob:"))
        if address.scheme not in ("data", "file") and address.hostname not in ("127.0.0.1", None):
            self.problems.append(f"request to another host: {request.url}")

    def _listen(self, socket: WebSocket) -> None:
        socket.on("framesent", lambda frame: self.sent.append(len(frame)))
        socket.on("framereceived", lambda frame: self.received.append(len(frame)))


class Seats:
    """Tabs of one browser, each for one test at a time."""

    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        self._free: list[Seat] = []

    @contextmanager
    def taken(self, *, width: int = 1440, height: int = 900, dark: bool = False, ratio: float = 1) -> Iterator[Seat]:
        """Yield an empty tab with ``ratio`` device pixels per CSS pixel, and check it for problems at the end.

        Raises:
            AssertionError: There were problems; the message lists them.
        """
        seat = next((seat for seat in self._free if seat.ratio == ratio), None) or Seat(self._browser, ratio)
        if seat in self._free:
            self._free.remove(seat)
        seat.prepare(width=width, height=height, dark=dark)
        problems = ["the test ended before it looked"]
        try:
            yield seat
            problems = [] if seat.page.is_closed() else seat.found()
        finally:
            if not problems and len(self._free) < MAX_FREE and seat.empty():
                self._free.append(seat)
            else:
                seat.context.close()
        assert not problems, "\n".join(problems)
