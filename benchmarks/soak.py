"""Memory of one server while visitors click, every minute.

    python -m benchmarks.soak                    # 40 visitors, a click a minute each, 10 minutes
    python -m benchmarks.soak --minutes 30

Each visitor opens one of our checkpoints, then clicks about once a minute: a new sentence, another page, or the same
page again. After ten minutes on average a visitor closes the tab, and another one arrives.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
import time
from collections import Counter
from collections.abc import Sequence

from benchmarks.students import sentence
from tests.harness.app_server import REPOSITORY, AppServer, add_server_options
from tests.harness.browser_session import BrowserSession
from tests.harness.runs import Run, attempt

CLICK_SECONDS, STAY_SECONDS = 60.0, 600.0
SENTENCE_SHARE, RERUN_SHARE = 0.35, 0.1  # share of the clicks; all others open another page
BOX = "sentence"


class Visitors:
    """Visitors who arrive, click and leave until ``end``; ``problems`` counts their errors."""

    def __init__(self, server: AppServer, names: Sequence[str], end: float) -> None:
        self.server, self.names, self.end = server, names, end
        self.random = random.Random(0)
        self.clicks = 0
        self.problems: Counter[str] = Counter()

    async def take_seat(self) -> None:
        """Let one visitor after another use a seat."""
        await self._pause(self.random.uniform(0, CLICK_SECONDS))
        while time.monotonic() < self.end:
            leave = time.monotonic() + self.random.expovariate(1 / STAY_SECONDS)
            async with BrowserSession(self.server.base) as session:
                self._note(await attempt(session.open("", {"checkpoint": self.random.choice(self.names)})))
                while session.pages and time.monotonic() < min(self.end, leave):
                    await self._pause(self.random.uniform(0.5, 1.5) * CLICK_SECONDS)
                    await self._click(session)

    async def _click(self, session: BrowserSession) -> None:
        self.clicks += 1
        kind = self.random.random()
        if kind < SENTENCE_SHARE and _has_box(session):
            run = attempt(session.type_into(BOX, sentence(self.random.randrange(200_000))))
        elif kind < SENTENCE_SHARE + RERUN_SHARE:
            run = attempt(session.rerun())
        else:
            run = attempt(session.go_to(self.random.choice([page for page in session.pages if page])))
        self._note(await run)

    def _note(self, run: Run) -> None:
        self.problems.update(error.splitlines()[0][:200] for error in run.errors)

    async def _pause(self, seconds: float) -> None:
        await asyncio.sleep(max(0.0, min(seconds, self.end - time.monotonic())))


def _has_box(session: BrowserSession) -> bool:
    """Return whether the page of a session is about a sentence."""
    try:
        session.find(BOX)
    except KeyError:
        return False
    return True


async def soak(server: AppServer, names: Sequence[str], *, count: int, minutes: float) -> Visitors:
    """Let ``count`` visitors click, and print what the server holds every minute."""
    async with BrowserSession(server.base) as first:
        await first.open()
        for page in [page for page in first.pages if page]:
            await first.go_to(page)
    print(f"before      {server.held}", flush=True)
    visitors = Visitors(server, names, end=time.monotonic() + 60 * minutes)
    clicking = asyncio.gather(*(visitors.take_seat() for _ in range(count)))
    begun = time.monotonic()
    while not clicking.done():
        await asyncio.wait({clicking}, timeout=60)
        print(f"{(time.monotonic() - begun) / 60:4.1f} minutes{server.held}", flush=True)
    await clicking
    return visitors


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return 1 if any page showed an error."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.soak", description=__doc__.split("\n")[0])
    parser.add_argument("--visitors", type=int, default=40)
    parser.add_argument("--minutes", type=float, default=10.0)
    add_server_options(parser)
    options = parser.parse_args(arguments)
    names = sorted(path.name for path in (REPOSITORY / "checkpoints").iterdir() if path.is_dir())
    with AppServer(options.entry, port=options.port, options=options.options) as server:
        visitors = asyncio.run(soak(server, names, count=options.visitors, minutes=options.minutes))
    print(f"{visitors.clicks} clicks, {sum(visitors.problems.values())} problems")
    for problem, times in visitors.problems.most_common(20):
        print(f"{times:5} × {problem}")
    return 1 if visitors.problems else 0


if __name__ == "__main__":
    sys.exit(main())
