"""The first view: seconds from the start of the server to the first picture, and what comes over the network for it.

    python -m benchmarks.first_view [--rounds 5] [--megabits 4]

Both entries, ``streamlit run app.py`` and ``python -m deploy.serve``, in a real Chromium: for a browser that has never
been here and for its second visit, at full speed and at ``--megabits``. Medians of the rounds.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field

from playwright.sync_api import Browser, BrowserContext

from benchmarks.chromium import Tab, chromium, new_visitor
from benchmarks.counting_proxy import CountingProxy
from benchmarks.entries import ENTRIES, started

PAGES = {"Overview": "", "Attention": "attention"}
ROUNDS = 3
MEGABITS = 4.0  # what is left for each of 25 browsers that load at once over 100 Mbit/s


@dataclass
class Rows:
    """One number per round for each line of the table, in the order in which they were first measured."""

    numbers: dict[str, list[float]] = field(default_factory=dict)

    def add(self, line: str, number: float) -> None:
        self.numbers.setdefault(line, []).append(number)

    def median(self, line: str) -> float:
        return statistics.median(self.numbers[line])


def visit(context: BrowserContext, address: str, rows: Rows, line: str, *, megabits: float = 0) -> None:
    """One visit in a tab of its own."""
    tab = Tab(context)
    if megabits:
        tab.throttle(megabits)
    rows.add(f"{line}: picture, s", tab.open(address) / 1000)
    rows.add(f"{line}: files, MB", sum(tab.files.values()) / 1e6)
    rows.add(f"{line}: requests over the network", sum(1 for size in tab.files.values() if size))
    rows.add(f"{line}: Plotly fetched", tab.fetched("PlotlyChart"))
    tab.page.close()
    if tab.errors:
        raise RuntimeError(f"{address}: {tab.errors[0]}")


def one_round(browser: Browser, entry: str, rows: Rows, *, megabits: float) -> None:
    """Start the server anew and visit it."""
    with started(entry) as (port, seconds):
        rows.add("start of the process → it answers, s", seconds)
        base = f"http://127.0.0.1:{port}"
        with new_visitor(browser) as first:
            tab = Tab(first)
            rows.add("first visitor of all → picture, s", tab.open(base) / 1000)
            rows.add("start of the process → first picture, s", seconds + rows.numbers[list(rows.numbers)[1]][-1])
        for name, page in PAGES.items():
            with new_visitor(browser) as context:
                visit(context, f"{base}/{page}", rows, f"{name}, new browser")
                visit(context, f"{base}/{page}", rows, f"{name}, second visit")
            with new_visitor(browser) as context:
                visit(context, f"{base}/{page}", rows, f"{name}, new browser, {megabits:g} Mbit/s", megabits=megabits)
            with new_visitor(browser) as context, CountingProxy("127.0.0.1", port) as wire:
                Tab(context).open(f"{wire.base}/{page}")
                rows.add(f"{name}, new browser: WebSocket, KB", wire.received / 1e3)


def measure(entries: Sequence[str], *, rounds: int, megabits: float) -> dict[str, Rows]:
    """The entries take turns, so that what slows the machine down for a while slows both."""
    tables = {entry: Rows() for entry in entries}
    with chromium() as browser:
        for _ in range(rounds):
            for entry, rows in tables.items():
                one_round(browser, entry, rows, megabits=megabits)
    return tables


def table(measured: dict[str, Rows]) -> str:
    """One line for each number that was measured, one column for each entry."""
    first = next(iter(measured.values()))
    lines = [f"{'':62}" + "".join(f"{entry:>16}" for entry in measured)]
    for line in first.numbers:
        lines.append(f"{line:62}" + "".join(f"{rows.median(line):16.3g}" for rows in measured.values()))
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.first_view", description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--megabits", type=float, default=MEGABITS, help="a slow network (default: 4 Mbit/s)")
    options = parser.parse_args(arguments)
    if options.rounds < 1:
        parser.error(f"--rounds is {options.rounds}; at least 1 is needed")
    if options.megabits <= 0:
        parser.error(f"--megabits is {options.megabits:g}; a network needs more than 0")
    print(table(measure(list(ENTRIES), rounds=options.rounds, megabits=options.megabits)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
