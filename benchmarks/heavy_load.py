"""Thirty sessions ask for the heaviest that there is, while one more works normally: how long does that one wait?

    python -m benchmarks.heavy_load                         # measures of trust, widest beam, live training: one by one
    python -m benchmarks.heavy_load --of beam --students 5

The thirty ask all at once, each with a sentence of their own: for the measures of trust at 256 tokens, for a beam of 5
at as many, or for a live training. Meanwhile one student types sentences on Attention, until ``--seconds`` are over.
Then the thirty close their tabs. Exits with 1 where a goal is missed.
"""

import argparse
import asyncio
import statistics
import sys
from collections.abc import Awaitable, Callable, Sequence

import transformer
from benchmarks.app_server import REPOSITORY, AppServer
from benchmarks.browser_session import BrowserSession
from benchmarks.load import STUDENTS, Goal, conclude
from benchmarks.long_inputs import long_sentence
from benchmarks.runs import Run, attempt
from benchmarks.students import MAX_STUDENTS, Student, sentence

SECONDS = 30.0  # of the one student's work
RERUN, MEGABYTES = 2.0, 2000.0  # the goals
AFTERWARDS = 25.0  # seconds for what nobody waits for any longer to end; a training goes on for 20 without its reader

Visit = Callable[[BrowserSession, str], Awaitable[Run]]


async def trust(visitor: BrowserSession, text: str) -> Run:
    """The measures beside the weights of a head, for a whole text."""
    return await visitor.open("attention", {"checkpoint": "gpt-en", "sentence": text, "attention_section": "trust"})


async def beam(visitor: BrowserSession, text: str) -> Run:
    """The widest beam that the page offers, translating a whole text."""
    address = {"checkpoint": "en-fr", "sentence": text, "decoding_section": "tree", "beam_width": "5"}
    return await visitor.open("decoding", address)


async def training(visitor: BrowserSession, text: str) -> Run:
    """A live training, looked at as often as a browser looks."""
    await visitor.open("training", {"sentence": text, "training section": "now"})
    run = await visitor.click("toy start")
    while True:
        run = await visitor.repeat()
        if run.errors:
            return run


HEAVY: dict[str, Visit] = {"trust": trust, "beam": beam, "training": training}


def texts(of: str, n_students: int) -> list[str]:
    """As long as the model reads, and every one different from the first word on."""
    name = "gpt-en" if of == "trust" else "en-fr"
    common = long_sentence(transformer.load(REPOSITORY / "checkpoints" / name), 230)
    return [f"{sentence(number)} {common}" for number in range(n_students)]


async def measure(server: AppServer, of: str, n_students: int, seconds: float) -> list[Goal]:
    """One student's reruns while all others wait for ``of``."""
    one = Student(MAX_STUDENTS - 1, server.base)
    await one.open()
    await one.session.go_to("attention")
    before = server.megabytes
    visitors = [BrowserSession(server.base) for _ in range(n_students)]
    asked = [
        asyncio.create_task(attempt(HEAVY[of](visitor, text)))
        for visitor, text in zip(visitors, texts(of, n_students), strict=True)
    ]
    loop, reruns, errors = asyncio.get_running_loop(), [], []
    end, which = loop.time() + seconds, 0
    while loop.time() < end:
        which = 1 - which
        run = await attempt(one.write(which))
        reruns.append(run.seconds)
        errors += run.errors
        await asyncio.sleep(1)
    errors += [error for task in asked if task.done() for error in task.result().errors]
    for task in asked:
        task.cancel()
    await asyncio.gather(*asked, return_exceptions=True)
    for visitor in visitors:
        await visitor.close()
    peak = server.peak_megabytes
    await asyncio.sleep(AFTERWARDS)
    busy = server.processor_seconds
    await asyncio.sleep(2)
    idle = server.processor_seconds - busy
    await one.session.close()
    over = sum(task.done() and not task.cancelled() for task in asked)
    return [
        Goal(
            f"{of}: a rerun of the one student ({len(reruns)} of them; {over} of {n_students} others were served)",
            f"< {RERUN:g} s",
            f"median {statistics.median(reruns):.2f} s, longest {max(reruns):.2f} s, "
            f"{sum(seconds < RERUN for seconds in reruns)} of {len(reruns)} in time",
            max(reruns) < RERUN,
        ),
        Goal(f"{of}: most memory ({before:.0f} MB before)", f"< {MEGABYTES:g} MB", f"{peak:.0f} MB", peak < MEGABYTES),
        Goal(f"{of}: processor time when they have left", "< 0.2 of 2 s", f"{idle:.2f} s", idle < 0.2),
        Goal(f"{of}: errors on a page", "none", "; ".join(sorted(set(errors))) or "none", not errors),
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.heavy_load", description=__doc__.split("\n")[0])
    parser.add_argument("--of", nargs="+", choices=list(HEAVY), default=list(HEAVY), help="(default: all)")
    parser.add_argument("--students", type=int, default=STUDENTS, help=f"who ask for it (default: {STUDENTS})")
    parser.add_argument("--seconds", type=float, default=SECONDS, help=f"of each (default: {SECONDS:g})")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON, nothing else")
    options = parser.parse_args(arguments)
    if not 1 <= options.students < MAX_STUDENTS:
        parser.error(f"--students is {options.students}; choose 1 to {MAX_STUDENTS - 1}")
    goals = []
    for of in options.of:
        with AppServer("deploy.serve") as server:
            goals += asyncio.run(measure(server, of, options.students, options.seconds))
    return conclude(goals, "{what}\n    {goal}: {verdict}", as_json=options.json)


if __name__ == "__main__":
    sys.exit(main())
