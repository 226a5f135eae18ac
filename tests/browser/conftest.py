"""The app on a free loopback port, and a real Chromium that notices everything that goes wrong.

A test that takes ``visit`` fails when the page throws an error, shows a Streamlit exception, writes an error to the
console, or asks any other host than 127.0.0.1 for anything.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, Request, expect, sync_playwright

ROOT = Path(__file__).resolve().parents[2]
CHROMIUM_ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
# A page that is opened by its own address asks for these below that address first, and Streamlit answers 404 by design.
_PROBES = ("/_stcore/health", "/_stcore/host-config")
_START_LIMIT, _SETTLE_LIMIT = 120.0, 120.0
expect.set_options(timeout=30_000)  # 5 s by default; a machine with other work may take longer to show what is right


@pytest.fixture(scope="session")
def start_app() -> Iterator[Callable[..., str]]:
    """``start_app(checkpoints_folder)`` → the address of a running app; ``script=`` starts another file than app.py."""
    with ExitStack() as running:
        yield lambda folder, script=ROOT / "app.py": running.enter_context(_serve(Path(folder), Path(script)))


@pytest.fixture(scope="session")
def app(start_app: Callable[..., str], checkpoints_folder: Path) -> str:
    """The address of the app with the tiny checkpoints of ``tests/conftest.py``."""
    return start_app(checkpoints_folder)


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    executable = shutil.which("chromium")
    if executable is None:
        pytest.fail("there is no chromium on this machine; install Debian's with: apt-get install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=CHROMIUM_ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture
def visit(chromium: Browser) -> Iterator[Callable[..., Page]]:
    """``visit(address, width=1440, height=900, dark=False)`` → a settled page in a fresh browser context."""
    contexts, problems = [], []

    def open_page(address: str, *, width: int = 1440, height: int = 900, dark: bool = False) -> Page:
        context = chromium.new_context(
            viewport={"width": width, "height": height}, color_scheme="dark" if dark else "light", accept_downloads=True
        )
        context.set_default_timeout(1000 * _SETTLE_LIMIT)  # a machine with other work may be slow
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: problems.append(f"page error: {error}"))
        page.on("console", lambda message: problems.extend(_console_problem(message)))
        page.on("request", lambda request: problems.extend(_request_problem(request)))
        page.goto(address)
        settle(page)
        return page

    yield open_page
    for context in contexts:
        for page in context.pages:
            problems += [f"exception shown: {text}" for text in page.get_by_test_id("stException").all_inner_texts()]
        context.close()
    assert not problems, "\n".join(problems)


def settle(page: Page) -> None:
    """Wait until the script has stopped running and has not started again for a moment."""
    end = time.monotonic() + _SETTLE_LIMIT
    calm = 0
    while calm < 4:
        if time.monotonic() > end:
            raise TimeoutError(f"{page.url} was still running after {_SETTLE_LIMIT:.0f} s")
        state = page.evaluate(
            """() => {
                const app = document.querySelector("[data-testid=stApp]");
                const waiting = document.querySelector("[data-testid=stSkeleton]");
                return waiting ? "waiting" : app?.dataset.testScriptState;
            }"""
        )
        calm = calm + 1 if state == "notRunning" else 0
        page.wait_for_timeout(100)


@contextmanager
def _serve(folder: Path, script: Path) -> Iterator[str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
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
        process.wait(timeout=20)


def _wait_until_healthy(process: subprocess.Popen, address: str) -> None:
    end = time.monotonic() + _START_LIMIT
    while time.monotonic() < end:
        if process.poll() is not None:
            raise RuntimeError(f"streamlit ended with exit status {process.returncode} before it answered")
        try:
            with urllib.request.urlopen(f"{address}/_stcore/health", timeout=2) as answer:
                if answer.status == 200:
                    return
        except (urllib.error.URLError, OSError):
            time.sleep(0.2)
    raise TimeoutError(f"{address} did not answer within {_START_LIMIT:.0f} s")


def _console_problem(message: ConsoleMessage) -> list[str]:
    source = urlsplit((message.location or {}).get("url", "")).path
    if message.type != "error" or source.endswith(_PROBES):
        return []
    return [f"console error: {message.text} ({source})"]


def _request_problem(request: Request) -> list[str]:
    address = urlsplit(request.url)
    if address.scheme in ("data", "blob", "file") or address.hostname == "127.0.0.1":
        return []
    return [f"request to another host: {request.url}"]
