"""The benchmarks of the first view and of the wire run, count what they say they count, and print all their rows."""

from __future__ import annotations

import socket
import threading
from contextlib import nullcontext
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from benchmarks import first_view, wire
from benchmarks.counting_proxy import CountingProxy

pytestmark = [pytest.mark.browser, pytest.mark.slow]


@pytest.fixture
def one_browser(chromium: Browser, monkeypatch: pytest.MonkeyPatch) -> None:
    """The benchmarks measure in the Chromium of all tests; a process cannot drive two."""
    for benchmark in (first_view, wire):
        monkeypatch.setattr(benchmark, "chromium", lambda: nullcontext(chromium))


@pytest.mark.usefixtures("one_browser")
def test_the_grids_meet_their_goals_on_the_wire(capsys: pytest.CaptureFixture[str]) -> None:
    """Of the large one the size alone: Plotly's 144 subplots take a minute."""
    measured = wire.measure(rounds=1, grid_only=True, clicked=tuple(wire.GRIDS)[:1])
    rows = {row.what: row for row in measured}
    sizes = [row for row in rows.values() if row.unit == "bytes"]
    assert [row.goal for row in sizes] == [60_000, 600_000]
    assert all(row.met for row in sizes), sizes
    # Its weights alone, deflated, cannot be much smaller: the message that was measured is the one with the grid.
    assert sizes[0].value > 20_000 and sizes[1].value > 200_000
    ratios = [row for row in rows.values() if row.unit == "times"]
    assert len(ratios) == 1 and ratios[0].value > 1  # how much, a busy machine cannot say
    printed = capsys.readouterr().out
    assert all(str(row) in printed for row in rows.values())


@pytest.mark.usefixtures("one_browser")
def test_the_first_view_is_measured_by_both_entries(
    checkpoints_folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(first_view, "PAGES", {"Attention": "attention"})
    assert first_view.main(["--rounds", "1", "--megabits", "50"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["streamlit", "run", "deploy.serve"]
    numbers = {line[:62].strip(): [float(number) for number in line[62:].split()] for line in lines[1:]}
    assert numbers["Attention, new browser: Plotly fetched"] == [0, 0]
    plain, compressed = numbers["Attention, new browser: files, MB"]
    assert 0.2 < compressed < plain / 2
    assert all(again < 0.1 for again in numbers["Attention, second visit: files, MB"])
    plain, compressed = numbers["Attention, new browser: WebSocket, KB"]
    assert 1 < compressed < 0.9 * plain  # most of it is the script of the pictures, which is deflated as it is
    assert all(seconds > 0 for name, pair in numbers.items() if name.endswith(" s") for seconds in pair)


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


def test_goals_are_a_most_or_a_least() -> None:
    assert str(wire.Row("x", 60_001, "bytes", 60_000)).endswith("goal ≤ 60,000: MISSED")
    assert str(wire.Row("x", 10.0, "times", 10.0, at_least=True)).endswith("goal ≥ 10: met")
    assert not wire.Row("x", 9.9, "times", 10.0, at_least=True).met


@pytest.mark.parametrize("module", [first_view, wire])
def test_rounds_must_be_positive(module, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        module.main(["--rounds", "0"])
    assert "--rounds is 0; at least 1 is needed" in capsys.readouterr().err
