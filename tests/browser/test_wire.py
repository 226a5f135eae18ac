"""The benchmark of the wire runs, counts what it says it counts, and prints all its rows."""

from __future__ import annotations

import socket
import threading
from contextlib import nullcontext

import pytest
from playwright.sync_api import Browser

from benchmarks import wire
from benchmarks.counting_proxy import CountingProxy

pytestmark = pytest.mark.browser


@pytest.mark.nightly
def test_a_rerun_is_small_and_looking_around_is_silent(
    chromium: Browser, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every run holds the same of Attention: tests/browser/test_serve.py, test_canvas.py."""
    monkeypatch.setattr(wire, "chromium", lambda: nullcontext(chromium))  # a process cannot drive two
    rows = wire.measure(["deploy.serve"])
    assert all(row.met for row in rows if row.unit == "messages"), rows
    assert len([row for row in rows if row.goal == wire.RERUN]) == 4 and len(rows) > 12
    printed = capsys.readouterr().out
    assert all(str(row) in printed for row in rows)


def test_the_wire_counts_what_comes_after_the_upgrade_and_nothing_else() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            for said in (b"HTTP/1.1 200 OK\r\n\r\nplain", b"HTTP/1.1 101 Switching\r\n\r\n12345"):
                connection, _ = server.accept()
                connection.recv(100)
                connection.sendall(said)
                if connection.recv(100):
                    connection.sendall(b"678")
                connection.close()

        threading.Thread(target=answer, daemon=True).start()
        with CountingProxy(*server.getsockname()) as wire:
            host, port = wire.base.removeprefix("http://").split(":")
            for counted in (0, 8):
                with socket.create_connection((host, int(port))) as browser:
                    browser.sendall(b"GET / HTTP/1.1\r\n\r\n")
                    browser.recv(100)
                    browser.sendall(b"more")
                    assert browser.recv(100) == b"678"
                assert wire.received == counted
            wire.forget()
            assert wire.received == 0


def test_a_goal_is_met_or_missed() -> None:
    assert str(wire.Row("x", 60_001, "bytes", 60_000)).endswith("goal ≤ 60,000: MISSED")
    assert str(wire.Row("x", 60_000, "bytes", 60_000)).endswith("goal ≤ 60,000: met")
