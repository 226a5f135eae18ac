"""Warm tabs of one Chromium: a tab that has opened the app before opens it again in half the time.

Who takes a seat gets an empty tab of the width and theme asked for. It notes what goes wrong and what goes over the
wire until it is given back; then its storage is emptied and its session on the server ends.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

from playwright.sync_api import Browser, ConsoleMessage, Error, Page, Request, WebSocket

MAX_USES = 60  # then the tab is closed, so that no leak of Chromium's own grows with the number of tests
MAX_FREE = 4  # tabs that wait for the next test; four are the most that one test takes
PATIENCE = 120_000  # milliseconds; a machine with other work may be slow
# A page that is opened by its address asks for these below that address first; `streamlit run` answers 404 by design.
_PROBES = ("/_stcore/health", "/_stcore/host-config")
# When the page last asked the server for something, and when it last heard from it.
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

    ``problems``: what went wrong on its page. ``requests``: the addresses that it asked for. ``sent`` and ``received``:
    how long each frame of its WebSockets was.
    """

    def __init__(self, browser: Browser, ratio: float) -> None:
        self.ratio, self.uses = ratio, 0
        self.problems: list[str] = []
        self.requests: list[str] = []
        self.sent: list[int] = []
        self.received: list[int] = []
        # Chromium draws without a graphics card here: what moves would take a third of the processor.
        self.context = browser.new_context(accept_downloads=True, device_scale_factor=ratio, reduced_motion="reduce")
        self.context.set_default_timeout(PATIENCE)
        self.context.add_init_script(f"({_LISTEN})()")
        self.page: Page = self.context.new_page()
        self.page.on("pageerror", lambda error: self.problems.append(f"page error: {error}"))
        self.page.on("console", self._hear)
        self.page.on("request", self._ask)
        self.page.on("websocket", self._listen)

    def prepare(self, *, width: int, height: int, dark: bool) -> None:
        """For the next visitor: nothing noted, and the window of this size and theme."""
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
        """All that went wrong so far, an exception on the page included."""
        shown = self.page.get_by_test_id("stException").all_inner_texts()
        return [*self.problems, *(f"exception shown: {text}" for text in shown)]

    def empty(self) -> bool:
        """Leave the page and forget what it stored; False where the tab is not fit for another visitor."""
        try:
            if self.uses >= MAX_USES or self.context.pages != [self.page]:
                return False
            self.context.set_offline(False)
            if self.page.url.startswith("http"):
                self.page.evaluate("() => { localStorage.clear(); sessionStorage.clear(); }")
            self.page.goto("about:blank")  # also out of full screen
            self.page.mouse.move(0, 0)
            self.context.clear_cookies()
        except Error:  # closed by the test, or crashed
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
    """The tabs of one browser, each for one visitor at a time."""

    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        self._free: list[Seat] = []

    @contextmanager
    def taken(self, *, width: int = 1440, height: int = 900, dark: bool = False, ratio: float = 1) -> Iterator[Seat]:
        """An empty tab; ``ratio``: its pixels for each of CSS. At the end nothing must have gone wrong in it.

        Raises ``AssertionError`` with all that did.
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
