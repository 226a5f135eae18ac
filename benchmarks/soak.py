"""A class on one server for an hour: the resources of the server before, during and afterwards.

    python -m benchmarks.soak                              # 40 visitors, one click per minute each, 60 minutes
    python -m benchmarks.soak --minutes 10 --json
    python -m benchmarks.soak --checkpoints FOLDER         # other checkpoints, opened in turn

Each visitor opens one of many checkpoints, then clicks about once a minute: another page, a new sentence,
or the same page again. About every tenth minute a visitor closes the tab and another one arrives. In the end
all leave; the last line shows the resources ten minutes later.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path

from benchmarks.students import sentence
from harness.app_server import REPOSITORY, AppServer, add_server_options
from harness.browser_session import BrowserSession
from harness.process_memory import Held
from harness.runs import Run, attempt

VISITORS, MINUTES, AFTER_MINUTES = 40, 60.0, 10.0
CLICK_SECONDS, STAY_MINUTES, REPORT_MINUTES = 60.0, 10.0, 5.0
SENTENCE_SHARE, RERUN_SHARE = 0.35, 0.1  # share of the clicks; all others open another page


class Visitors:
    """Visitors who arrive, click and leave until ``end`` (of ``time.monotonic``).

    ``problems`` counts errors.
    """

    def __init__(self, server: AppServer, names: Sequence[str], *, end: float, seed: int = 0) -> None:
        self.server, self.names, self.end = server, names, end
        self.random = random.Random(seed)
        self.clicks, self.visits = 0, 0
        self.problems: Counter[str] = Counter()

    async def run(self, count: int) -> None:
        """Let ``count`` visitors click at the same time."""
        await asyncio.gather(*(self._seat() for _ in range(count)))

    async def _seat(self) -> None:
        await self._pause(self.random.uniform(0, CLICK_SECONDS))
        while time.monotonic() < self.end:
            await self._visit(self.random.expovariate(1 / STAY_MINUTES) * 60)

    async def _visit(self, seconds: float) -> None:
        session, leave = BrowserSession(self.server.base), time.monotonic() + seconds
        name = self.names[self.visits % len(self.names)]
        self.visits += 1
        self._note(await attempt(session.open("", {"checkpoint": name})), f"open {name}")
        while session.pages and time.monotonic() < min(self.end, leave):
            await self._pause(self.random.uniform(0.5, 1.5) * CLICK_SECONDS)
            await self._click(session, name)
        await session.close()

    async def _click(self, session: BrowserSession, name: str) -> None:
        self.clicks += 1
        kind = self.random.random()
        try:
            if kind < SENTENCE_SHARE:
                session.find("sidebar sentence")
        except KeyError:  # a page about images, or not about a sentence
            kind = 1.0
        if kind < SENTENCE_SHARE:
            text = sentence(self.random.randrange(200_000))
            self._note(await attempt(session.type_into("sidebar sentence", text)), f"type, {name}")
        elif kind < SENTENCE_SHARE + RERUN_SHARE:
            self._note(await attempt(session.rerun()), f"rerun, {name}")
        else:
            page = self.random.choice([page for page in session.pages if page])
            self._note(await attempt(session.go_to(page)), f"{page}, {name}")

    def _note(self, run: Run, what: str) -> None:
        for error in run.errors:
            self.problems[f"{what}: {error.splitlines()[0][:200]}"] += 1

    async def _pause(self, seconds: float) -> None:
        await asyncio.sleep(max(0.0, min(seconds, self.end - time.monotonic())))


async def soak(
    server: AppServer, names: Sequence[str], *, count: int, minutes: float, after: float, say: Callable[[str], None]
) -> dict:
    """Return what the server holds at each moment, and the numbers of clicks, visits and problems."""
    async with BrowserSession(server.base) as first:
        await first.open()
        for page in [page for page in first.pages if page]:
            await first.go_to(page)
    held: dict[str, Held] = {}

    def look(moment: str) -> None:
        held[moment] = server.held
        say(f"{moment:<24}{held[moment]}")

    look("before")
    visitors = Visitors(server, names, end=time.monotonic() + 60 * minutes)
    clicking = asyncio.create_task(visitors.run(count))
    passed = 0.0
    while not clicking.done():
        await asyncio.wait({clicking}, timeout=60 * min(REPORT_MINUTES, minutes))
        passed += min(REPORT_MINUTES, minutes)
        if not clicking.done():
            look(f"{passed:g} minutes")
    await clicking
    look("at the end")
    await asyncio.sleep(60 * after)
    for _ in range(2):  # sessions are dropped when the next one ends
        async with BrowserSession(server.base) as visitor:
            await visitor.open()
    await asyncio.sleep(3)
    look(f"{after:g} minutes later")
    say(f"{visitors.visits} visits, {visitors.clicks} clicks, {sum(visitors.problems.values())} problems")
    for problem, times in visitors.problems.most_common(20):
        say(f"{times:5} × {problem}")
    return {
        "held": {moment: asdict(one) for moment, one in held.items()},
        "visits": visitors.visits,
        "clicks": visitors.clicks,
        "problems": dict(visitors.problems),
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return 1 if any page showed an error."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.soak", description=__doc__.split("\n")[0])
    parser.add_argument("--visitors", type=int, default=VISITORS)
    parser.add_argument("--minutes", type=float, default=MINUTES)
    parser.add_argument(
        "--after", type=float, default=AFTER_MINUTES, help="minutes from the last visit to the last look"
    )
    parser.add_argument("--checkpoints", type=Path, help="the folder of those that are opened in turn (default: ours)")
    parser.add_argument("--json", action="store_true", help="print everything that was measured as JSON, nothing else")
    add_server_options(parser)
    options = parser.parse_args(arguments)
    say = (lambda text: None) if options.json else (lambda text: print(text, flush=True))
    folder = options.checkpoints or REPOSITORY / "checkpoints"
    names = sorted(path.name for path in folder.iterdir() if path.is_dir())
    environment = {"GLASSFORMER_CHECKPOINTS": str(folder)}
    with AppServer(options.entry, port=options.port, options=options.options, environment=environment) as server:
        found = asyncio.run(
            soak(server, names, count=options.visitors, minutes=options.minutes, after=options.after, say=say)
        )
        if found["problems"]:
            for line in server.last_lines(40):
                say(f"    server: {line}")
    if options.json:
        print(json.dumps(found, indent=2, ensure_ascii=False))
    return 1 if found["problems"] else 0


if __name__ == "__main__":
    sys.exit(main())
