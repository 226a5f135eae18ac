"""The entry point for a class: ready when it answers, compressed files, small reruns, settings kept."""

from __future__ import annotations

import gzip
import re
import socket
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page

from tests.browser.conftest import open_page, settle
from tests.browser.counting_proxy import CountingProxy
from tests.harness.app_server import AppServer
from tests.nights import by_day

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def port(checkpoints_folder: Path) -> Iterator[int]:
    environment = {"GLASSFORMER_CHECKPOINTS": str(checkpoints_folder), "OMP_NUM_THREADS": "1"}
    with AppServer("deploy.serve", environment={**environment, "GLASSFORMER_PUBLIC": "1"}) as server:
        yield server.port


def fetch(port: int, path: str, **headers: str) -> tuple[dict[str, str], bytes]:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", headers=named)
    with urllib.request.urlopen(request, timeout=30) as answer:
        return {name.lower(): value for name, value in answer.headers.items()}, answer.read()


def script_of(port: int) -> str:
    """Return the address of the script that the page loads first."""
    _, page = fetch(port, "/")
    return "/" + re.search(r'src="\./(static/js/index\.[^"]+)"', page.decode()).group(1)


def test_it_answers_on_this_machine_only(port: int) -> None:
    """The address in .streamlit/config.toml applies here as well."""
    assert fetch(port, "/_stcore/health")[1] == b"ok"
    with socket.socket() as other, pytest.raises(OSError):  # another address of this machine
        other.settimeout(5)
        other.connect(("127.0.0.2", port))


def test_scripts_come_compressed_and_are_kept_for_good(port: int) -> None:
    path = script_of(port)
    headers, packed = fetch(port, path, Accept_Encoding="gzip, deflate, br")
    plain_headers, plain = fetch(port, path)
    assert headers["content-encoding"] == "gzip" and "content-encoding" not in plain_headers
    assert gzip.decompress(packed) == plain and len(packed) < len(plain) / 2
    for found in (headers, plain_headers):
        assert "immutable" in found["cache-control"] and "javascript" in found["content-type"]
    assert headers["vary"] == "Accept-Encoding"


def test_a_part_of_a_file_and_an_unknown_one_are_streamlit_s_business(port: int) -> None:
    path = script_of(port)
    headers, part = fetch(port, path, Accept_Encoding="gzip", Range="bytes=0-99")
    assert "content-encoding" not in headers and len(part) == 100
    with pytest.raises(urllib.error.HTTPError, match="400"):
        fetch(port, "/static/js/../../../../../etc/passwd.12345678.js", Accept_Encoding="gzip")


def test_a_public_server_shows_no_metrics(port: int) -> None:
    metrics = "/_stcore/metrics"
    for path in (metrics, f"{metrics}/", f"{metrics}?families=session_events", f"/{metrics}"):
        with pytest.raises(urllib.error.HTTPError, match="40[04]"):
            fetch(port, path)


def test_the_app_opens_over_it(port: int, visit: Callable[..., Page]) -> None:
    page = visit(f"http://127.0.0.1:{port}/")
    page.locator(".diagram .block").first.wait_for()
    open_page(page, "Attention")
    page.locator("canvas[data-geometry]").first.wait_for()


@pytest.mark.parametrize("name", by_day(["", "attention", "heads"], ["attention"]))
def test_a_page_that_runs_again_sends_only_what_changed(port: int, visit: Callable[..., Page], name: str) -> None:
    """Run twice, because the browser reports its cached messages only after the first run."""
    with CountingProxy("127.0.0.1", port) as wire:
        page = visit(f"{wire.base}/{name}")
        for _ in range(2):
            wire.forget()
            page.locator("h1").first.click()
            page.keyboard.press("r")
            settle(page)
        assert 0 < wire.received <= 2000
