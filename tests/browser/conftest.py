"""The app on a free loopback port, and a real Chromium that records every problem.

One Chromium and one server per folder of checkpoints serve all tests of a process. A test that uses ``visit`` fails if
the page throws an error, shows a Streamlit exception, writes an error to the console, or contacts any host other than
127.0.0.1.
"""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.browser import canvas_harness
from tests.browser.scenes import Canvas, opened
from tests.browser.seats import Seat, Seats
from tests.harness.app_server import free_port

ROOT = Path(__file__).resolve().parents[2]
_START_LIMIT = 300.0  # seconds
_SETTLE_LIMIT = 120_000  # milliseconds, like all times in Playwright
# Whether the page has been idle for a moment: nothing runs, and clicks have been answered (a busy server reports late
# that it runs, and never reports to a part of a page that is gone). Each wait has its own number and starts counting
# again.
_CALM = """(wait) => {
    const asked = window.askedAt > (window.heardAt ?? 0) && performance.now() - window.askedAt < 10000;
    const calm = !asked && document.querySelector("[data-testid=stApp]")?.dataset.testScriptState === "notRunning"
        && !document.querySelector("[data-testid=stSkeleton]");
    if (!calm || window.calmSince?.wait !== wait) window.calmSince = {wait, at: performance.now()};
    return calm && performance.now() - window.calmSince.at >= 300;
}"""
_WAITS = itertools.count()
expect.set_options(timeout=60_000)  # 5 s by default; a busy machine may take longer


@pytest.fixture(scope="session")
def start_app() -> Iterator[Callable[..., str]]:
    """Return ``start_app(checkpoints_folder, script=…)``, which starts an app and returns its address."""
    with ExitStack() as running:
        yield lambda folder, script=ROOT / "app.py": running.enter_context(_serve(Path(folder), Path(script)))


@pytest.fixture(scope="session")
def app(start_app: Callable[..., str], checkpoints_folder: Path) -> str:
    """Address of the app with the tiny checkpoints of ``tests/conftest.py``."""
    return start_app(checkpoints_folder)


@pytest.fixture(scope="session")
def shipped(start_app: Callable[..., str]) -> str:
    """Address of the app with the checkpoints of the repository."""
    return start_app(ROOT / "checkpoints")


@pytest.fixture(scope="session")
def drawings(start_app: Callable[..., str], tmp_path_factory: pytest.TempPathFactory) -> str:
    """Address of the app with every figure of the attention canvas, which needs no checkpoint."""
    return start_app(tmp_path_factory.mktemp("none"), script=Path(__file__).with_name("canvas_harness.py"))


@pytest.fixture
def in_the_app(seats: Seats, drawings: str) -> Iterator[Callable[..., Canvas]]:
    """Return ``in_the_app("map")``, which opens a scene in the app, connected to Python."""
    with ExitStack() as scenes:
        yield lambda scene, **how: scenes.enter_context(opened(seats, f"{drawings}/?scene={scene}", **how))


@pytest.fixture(scope="session")
def saved_scene(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], str]:
    """Return ``saved_scene("map")``, which gives the address of a scene saved as a file."""
    folder = tmp_path_factory.mktemp("scenes")
    return cache(lambda scene: canvas_harness.drawn(scene).save(folder / f"{scene}.html").as_uri())


@pytest.fixture
def show(seats: Seats, saved_scene: Callable[[str], str]) -> Iterator[Callable[..., Canvas]]:
    """Return ``show("map")``, which opens a scene without Streamlit."""
    with ExitStack() as scenes:
        yield lambda scene, **how: scenes.enter_context(opened(seats, saved_scene(scene), **how))


@pytest.fixture(scope="session")
def seats(chromium: Browser) -> Seats:
    """Tabs shared by all tests of this process, one after the other."""
    return Seats(chromium)


@pytest.fixture
def sit(seats: Seats) -> Iterator[Callable[..., Seat]]:
    """Return ``sit(address, width=1440, height=900, dark=False)``, which yields an unshared tab."""
    with ExitStack() as taken:

        def open_page(address: str, **how: object) -> Seat:
            seat = taken.enter_context(seats.taken(**how))
            seat.page.goto(address)
            settle(seat.page)
            return seat

        yield open_page


@pytest.fixture
def visit(sit: Callable[..., Seat]) -> Callable[..., Page]:
    """Return ``visit(address, width=1440, height=900, dark=False)``, which opens a settled page."""
    return lambda address, **how: sit(address, **how).page


def settle(page: Page) -> None:
    """Wait until the script has stopped and has not started again for a moment."""
    page.wait_for_function(_CALM, arg=next(_WAITS), polling=50, timeout=_SETTLE_LIMIT)


def place_box(page: Page, what: str) -> Locator:
    """Return the list beside the sentence: "Attention", "Layer" or "Head"."""
    return page.get_by_test_id("stMain").get_by_role("combobox", name=what)


def choose_place(page: Page, what: str, value: object) -> None:
    """Choose an entry of a list beside the sentence, as a reader does."""
    place_box(page, what).click()
    name = str(value) if what == "Attention" else f"{what} {value}"
    page.get_by_role("option", name=name, exact=True).click()


def chosen_place(page: Page, what: str) -> str:
    """Return what is chosen in a list beside the sentence."""
    return place_box(page, what).input_value().removeprefix(f"{what} ")


def eventually(page: Page, read: Callable[[], object], expected: object, *, seconds: float = 30.0) -> bool:
    """Return whether ``read()`` returns ``expected`` within some seconds."""
    end = time.monotonic() + seconds
    while (found := read()) != expected and time.monotonic() < end:
        page.wait_for_timeout(100)
    return found == expected


def pause(page: Page, milliseconds: int) -> None:
    """Wait by the page's own clock and for two frames.

    However busy the page is, its shorter timers have run by then and what they changed is drawn.
    """
    page.evaluate(
        """milliseconds => new Promise((done) => setTimeout(
            () => requestAnimationFrame(() => requestAnimationFrame(done)), milliseconds))""",
        milliseconds,
    )


def open_page(page: Page, title: str) -> None:
    """Open another page as a reader does, through the row of pages or the menu of the others."""
    named = page.get_by_text(title, exact=True)  # a page of the laboratory has an icon beside its name
    link = page.get_by_test_id("stTopNavLink").filter(has=named)
    menus = page.get_by_test_id("stTopNavSection")
    shown = "node => getComputedStyle(node.closest('.rc-overflow-item')).opacity !== '0'"
    if link.count() and link.evaluate(shown):
        link.click()
    else:
        for menu in menus.all():
            if not menu.evaluate(shown):
                continue
            menu.click()
            entry = page.get_by_test_id("stTopNavDropdownLink").filter(has=named)
            expect(page.get_by_test_id("stTopNavDropdownLink").first).to_be_visible()
            if entry.count():
                entry.click()
                break
            page.keyboard.press("Escape")
        else:  # a page that is in no menu is opened from another one
            onward = page.locator(".st-key-onward").get_by_role("link").filter(has_text=title)
            assert onward.count(), f"nothing leads to the page {title!r}"
            onward.click()
    expect(page.get_by_role("heading", name=title, exact=True, level=1)).to_be_visible()
    settle(page)


@contextmanager
def _serve(folder: Path, script: Path) -> Iterator[str]:
    port = free_port()
    settings = {"server.port": port, "server.address": "127.0.0.1", "server.fileWatcherType": "none"}
    options = [f"--{name}={value}" for name, value in settings.items()]
    environment = {**os.environ, "GLASSFORMER_CHECKPOINTS": str(folder), "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(
        [sys.executable, "-m", "streamlit", "run", str(script), *options],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    address = f"http://127.0.0.1:{port}"
    try:
        _wait_until_healthy(process, address)
        yield address
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _wait_until_healthy(process: subprocess.Popen, address: str) -> None:
    end = time.monotonic() + _START_LIMIT
    while time.monotonic() < end:
        if process.poll() is not None:
            raise RuntimeError(f"streamlit ended with exit status {process.returncode} before it answered")
        try:
            with urllib.request.urlopen(f"{address}/_stcore/health", timeout=10) as answer:
                if answer.status == 200:
                    return
        except (urllib.error.URLError, OSError):
            time.sleep(0.2)
    raise TimeoutError(f"{address} did not answer within {_START_LIMIT:.0f} s")
