"""A page opened as a file in a browser that blocks all requests."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Frame, Page

from tests.browser.scenes import painted


@contextmanager
def opened_offline(chromium: Browser, file: Path, *, dark: bool = False) -> Iterator[Page]:
    """Open the page of a file; at the end, check that there were no errors and no requests."""
    context = chromium.new_context(
        viewport={"width": 1000, "height": 900}, color_scheme="dark" if dark else "light", offline=True
    )
    page, problems = context.new_page(), []
    page.on("pageerror", lambda error: problems.append(f"page error: {error}"))
    page.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
    page.on("dialog", lambda dialog: (problems.append(f"dialog: {dialog.message}"), dialog.dismiss()))
    page.on("request", lambda request: problems.extend(_asked(request.url, file)))
    page.goto(file.as_uri())
    yield page
    context.close()
    assert not problems, problems


def _asked(url: str, file: Path) -> list[str]:
    return [] if url == file.as_uri() or url.startswith(("data:", "blob:")) else [f"asked for {url}"]


def tip_at(frame: Page | Frame, place: tuple[str, ...], row: int, column: int) -> str:
    """Return the tooltip of a map for a cell; ``place`` names the corner and steps in its geometry."""
    canvas = frame.locator("canvas")
    canvas.scroll_into_view_if_needed()
    geometry, _ = painted(canvas)
    for name in place:
        geometry = geometry[name]
    x, y = geometry["x"] + (column + 0.5) * geometry["stepX"], geometry["y"] + (row + 0.5) * geometry["stepY"]
    canvas.hover(position={"x": x, "y": y})
    tip = frame.locator(".tip")
    tip.wait_for()
    return tip.inner_text()
