"""The first view: seconds from the start of the server to the first picture, and what comes over the network for it.

    python -m benchmarks.first_view [--rounds 5] [--megabits 4]

Both entries, ``streamlit run app.py`` and ``python -m deploy.serve``, in a real Chromium: for the first and the second
visit of a browser, at full speed and at ``--megabits``. Medians of the rounds.
"""

import argparse
import statistics
import sys
from collections import defaultdict
from collections.abc import Sequence

from playwright.sync_api import Browser, BrowserContext

from benchmarks.app_server import ENTRIES, AppServer
from benchmarks.chromium import Tab, chromium, new_visitor
from benchmarks.counting_proxy import CountingProxy

Rows = defaultdict[str, list[float]]  # a number per round for each line of the table, in the order of measuring
PAGES = {"Overview": "", "Attention": "attention"}
ROUNDS = 3
MEGABITS = 4.0  # what is left for each of 25 browsers that load at once over 100 Mbit/s


def visit(context: BrowserContext, address: str, rows: Rows, line: str, *, megabits: float = 0) -> None:
    """One visit in a tab of its own."""
    tab = Tab(context)
    if megabits:
        tab.throttle(megabits)
    rows[f"{line}: picture, s"].append(tab.open(address) / 1000)
    rows[f"{line}: files, MB"].append(sum(tab.files.values()) / 1e6)
    rows[f"{line}: requests over the network"].append(sum(1 for size in tab.files.values() if size))
    rows[f"{line}: Plotly fetched"].append(tab.fetched("PlotlyChart"))
    tab.page.close()
    if tab.errors:
        raise RuntimeError(f"{address}: {tab.errors[0]}")


def one_round(browser: Browser, entry: str, rows: Rows, *, megabits: float) -> None:
    """Start the server anew and visit it."""
    with AppServer(entry) as server:
        base, seconds = server.base, server.start_seconds
        rows["start of the process → it answers, s"].append(seconds)
        with new_visitor(browser) as first:
            picture = Tab(first).open(base) / 1000
            rows["first visitor of all → picture, s"].append(picture)
            rows["start of the process → first picture, s"].append(seconds + picture)
        for name, page in PAGES.items():
            with new_visitor(browser) as context:
                visit(context, f"{base}/{page}", rows, f"{name}, new browser")
                visit(context, f"{base}/{page}", rows, f"{name}, second visit")
            with new_visitor(browser) as context, CountingProxy("127.0.0.1", server.port) as wire:
                slow = f"{name}, new browser, {megabits:g} Mbit/s"
                visit(context, f"{wire.base}/{page}", rows, slow, megabits=megabits)
                rows[f"{name}, new browser: WebSocket, KB"].append(wire.received / 1e3)


def measure(entries: Sequence[str], *, rounds: int, megabits: float) -> dict[str, Rows]:
    """The entries take turns, so that a slow moment of the machine slows both."""
    tables = {entry: Rows(list) for entry in entries}
    with chromium() as browser:
        for _ in range(rounds):
            for entry, rows in tables.items():
                one_round(browser, entry, rows, megabits=megabits)
    return tables


def table(measured: dict[str, Rows]) -> str:
    """One line for each number that was measured, one column for each entry."""
    first = next(iter(measured.values()))
    lines = [f"{'':62}" + "".join(f"{entry:>16}" for entry in measured)]
    for line in first:
        lines.append(f"{line:62}" + "".join(f"{statistics.median(rows[line]):16.3g}" for rows in measured.values()))
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
