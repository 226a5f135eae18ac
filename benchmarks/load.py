"""Load test with thirty students: waiting time, memory, and leaks of data between sessions.

    python -m benchmarks.load                            # streamlit run app.py, on a free port of this machine
    python -m benchmarks.load --entry deploy.serve       # the entry for a class
    python -m benchmarks.load --public             # as a small public server serves it, with its limits of memory
    python -m benchmarks.load --students 5 --json
    python -m benchmarks.load --tabs 24            # each tab on another checkpoint, with little memory for models

The class works through a lesson of several steps; in each, all students act at the same moment, each with their own
sentences and edit. When all have left, the same class returns: now everything has been computed before, so this lesson
gives the "warm" times, and the memory of a session. Exits with 1 if a student received something that belongs to
another.

``--tabs`` measures what open tabs hold: each opens another checkpoint on three pages and stays open, while the server
may keep 60 MB of models.
"""

import argparse
import asyncio
import json
import statistics
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass, field
from itertools import cycle, islice
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.students import MAX_STUDENTS, Student, differences, sentence
from tests.harness.app_server import REPOSITORY, AppServer, add_server_options
from tests.harness.browser_session import BrowserSession
from tests.harness.process_memory import Held
from tests.harness.runs import Run, attempt

STUDENTS = 30
SECONDS, MEGABYTES, SHARE = 1.0, 0.5, 0.10  # goals of a class server
START, REST, CLASS = 30.0, 700.0, 1500.0  # goals of a public server: seconds, megabytes at rest, peak megabytes
KEPT_SECONDS = 120  # time for which the session of a closed tab is kept, in case the browser returns
TABS_MODELS, TABS_KEPT = 60, 5  # megabytes for models; seconds for which a closed tab's session is kept
TABS_PAGES = ("attention", "decoding", "tokens")
WARM = "Attention: a sentence seen before"


@dataclass(frozen=True)
class Step:
    """What all students do at the same moment; steps of the same name form one row, round by round."""

    name: str
    act: Callable[[Student], Awaitable[Run]]


def lesson() -> list[Step]:
    """Return the steps of a lesson in order."""

    def page(name: str) -> Callable[[Student], Awaitable[Run]]:
        return lambda student: student.session.go_to(name)

    return [
        Step("open the app (Overview)", Student.open),
        Step("switch to Attention", page("attention")),
        Step("Attention: a new sentence", lambda student: student.write(1)),
        *(Step(WARM, lambda student, which=which: student.write(which)) for which in (0, 1, 0, 1, 0)),
        *[Step("Attention: nothing changed", lambda student: student.session.rerun())] * 3,
        Step("switch to Heads", page("heads")),
        Step("switch to Add & Norm", page("add_norm")),
        Step("switch to Surgery", page("surgery")),
        Step("Surgery: everybody removes another head", Student.cut),
        Step("switch to Decoding", page("decoding")),
        *(Step("Decoding: the next step", lambda student, step=step: student.step(step)) for step in (1, 2, 3)),
    ]


@dataclass
class Row:
    """One kind of step in one lesson.

    Times are in seconds: ``last`` and ``median`` student of each round, processor time of the server and of the class
    (the measuring program itself) in each round. Sizes are kilobytes per student.
    """

    name: str
    last: list[float] = field(default_factory=list)
    median: list[float] = field(default_factory=list)
    server: list[float] = field(default_factory=list)
    clients: list[float] = field(default_factory=list)
    kilobytes: list[float] = field(default_factory=list)

    def __str__(self) -> str:
        last, worst = statistics.median(self.last), max(self.last)
        rounds = f" (worst of {len(self.last)}: {worst:.2f})" if len(self.last) > 1 else ""
        return (
            f"{self.name:<42}{last:7.2f}{statistics.median(self.median):8.2f}{statistics.median(self.server):8.2f}"
            f"{statistics.median(self.clients):8.2f}{statistics.median(self.kilobytes):8.0f}{rounds}"
        )


@dataclass
class Lesson:
    """Results of one lesson; ``megabytes`` before the class, with the whole class, and afterwards."""

    rows: list[Row]
    megabytes: dict[str, float]
    complaints: list[str]


async def hold_lesson(server: AppServer, students: Sequence[Student], *, say: Callable[[str], None]) -> Lesson:
    """Hold one lesson with all students together, and leave their tabs open."""
    rows: dict[str, Row] = {}
    complaints: list[str] = []
    before = server.megabytes
    say(f"{'':<42}{'last':>7}{'median':>8}{'server':>8}{'class':>8}{'kB':>8}")
    steps = lesson()
    for number, step in enumerate(steps):
        server_before, own_before = server.processor_seconds, time.process_time()
        runs = await asyncio.gather(*(attempt(step.act(student)) for student in students))
        row = rows.setdefault(step.name, Row(step.name))
        row.server.append(server.processor_seconds - server_before)
        row.clients.append(time.process_time() - own_before)
        row.last.append(max(run.seconds for run in runs))
        row.median.append(statistics.median(run.seconds for run in runs))
        row.kilobytes.append(statistics.median(run.n_bytes for run in runs) / 1000)
        for student, run in zip(students, runs, strict=True):
            complaints += student.complaints(run)
            student.keep_screen()
        if number + 1 == len(steps) or steps[number + 1].name != step.name:
            say(str(row))
    await asyncio.sleep(1)
    return Lesson(list(rows.values()), {"before": before, "with the class": server.megabytes}, complaints)


async def leave(students: Sequence[Student], server: AppServer, *, keep_seconds: float) -> float:
    """Close all tabs; return the megabytes once the server has dropped the sessions.

    It does so when the next session ends.
    """
    for student in students:
        await student.session.close()
    await asyncio.sleep(keep_seconds)
    for _ in range(2):  # the first removes the old sessions; their garbage is collected by the second at the latest
        async with BrowserSession(server.base) as visitor:
            await visitor.open()
    await asyncio.sleep(2)
    return server.megabytes


async def open_tabs(server: AppServer, names: Sequence[str], *, say: Callable[[str], None]) -> dict[str, Held]:
    """Open one tab per checkpoint, then close them all; return the server's resources at each moment.

    A first visitor opens the pages before, so that one-time loading does not count. The server drops the session of a
    closed tab after ``TABS_KEPT`` seconds.
    """
    async with BrowserSession(server.base) as first:
        await first.open("", {"checkpoint": names[0]})
        for page in TABS_PAGES:
            await first.go_to(page)
    found, tabs = {"before": server.held}, []
    say(f"{'before':<24}{found['before']}")
    for number, name in enumerate(names, start=1):
        tabs.append(BrowserSession(server.base))
        await tabs[-1].open("", {"checkpoint": name, "sentence": sentence(number)})
        for page in TABS_PAGES:
            await tabs[-1].go_to(page)
        if number % max(1, len(names) // 4) == 0 or number == len(names):
            found[f"{number} tabs"] = server.held
            say(f"{f'{number} tabs':<24}{server.held}")
    for tab in tabs:
        await tab.close()
    await asyncio.sleep(TABS_KEPT + 3)
    for _ in range(2):  # sessions are dropped when the next one ends
        async with BrowserSession(server.base) as visitor:
            await visitor.open("", {"checkpoint": names[0]})
    await asyncio.sleep(3)
    found["all have gone"] = server.held
    say(f"{'all have gone':<24}{server.held}")
    return found


def measure_tabs(count: int, folder: Path | None, *, port: int, say: Callable[[str], None]) -> dict[str, Held]:
    """Run ``open_tabs`` on a server with the checkpoints of ``folder`` in turn (default: copies of en-fr)."""
    with TemporaryDirectory() as temporary:
        if folder is None:
            folder = Path(temporary)
            for number in range(count):  # links suffice, because another path is another checkpoint
                (folder / f"copy-{number}").mkdir()
                for file in (REPOSITORY / "checkpoints" / "en-fr").iterdir():
                    if file.is_file():
                        (folder / f"copy-{number}" / file.name).symlink_to(file)
        names = sorted(path.parent.name for path in folder.glob("*/config.json"))
        environment = {"GLASSFORMER_MODELS_MB": str(TABS_MODELS), "GLASSFORMER_CHECKPOINTS": str(folder)}
        options = (f"--server.disconnectedSessionTTL={TABS_KEPT}",)
        with AppServer(port=port, options=options, environment=environment) as server:
            return asyncio.run(open_tabs(server, [*islice(cycle(names), count)], say=say))


async def repeat_alone(students: Sequence[Student], base: str) -> list[str]:
    """Repeat each student's actions alone, one after the other; return where the screens differ."""
    found = []
    for student in students:
        other = Student(student.number, base)
        async with other.session:
            for step in lesson():
                await attempt(step.act(other))
                other.keep_screen()
        found += differences(student, other)
    return found


async def measure(
    server: AppServer, *, n_students: int, keep_seconds: float, say: Callable[[str], None], public: bool = False
) -> dict:
    """Run both lessons and the comparison; return all measurements as plain values."""
    rest = server.megabytes
    async with BrowserSession(server.base) as first:
        opened = await first.open()
        await first.go_to("attention")
    say(f"a first visitor: {opened.seconds:.2f} s; then {server.megabytes:.0f} MB\n\nfirst lesson: everything is new")
    classes = [[Student(number, server.base) for number in range(n_students)] for _ in range(2)]
    lessons = []
    for number, students in enumerate(classes):
        lessons.append(await hold_lesson(server, students, say=say))
        say("they leave …")
        lessons[-1].megabytes["after"] = await leave(students, server, keep_seconds=keep_seconds)
        if number == 0:
            say("\nsecond lesson: the same sentences again")
    say("somebody does the same alone, once for each student …")
    complaints = [text for one in lessons for text in one.complaints]
    for students in classes[1:]:
        complaints += await repeat_alone(students, server.base)
    return {
        "students": n_students,
        "first visitor": opened.seconds,
        "lessons": [{"rows": [asdict(row) for row in one.rows], "megabytes": one.megabytes} for one in lessons],
        "goals": [
            asdict(goal)
            for goal in (
                *goals(lessons, n_students, complaints),
                *(public_server_goals(server.start_seconds, rest, server.peak_megabytes) if public else ()),
            )
        ],
        "complaints": complaints,
    }


@dataclass(frozen=True)
class Goal:
    """A goal with its result."""

    what: str
    goal: str
    measured: str
    met: bool


def goals(lessons: Sequence[Lesson], n_students: int, complaints: Sequence[str]) -> list[Goal]:
    """Return the goals with the results."""
    second = lessons[-1]
    warm = next(row for row in second.rows if row.name == WARM)
    seconds = statistics.median(warm.last)
    base, full = second.megabytes["before"], second.megabytes["with the class"]
    each = (full - base) / n_students
    rest = (second.megabytes["after"] - base) / base
    return [
        Goal(
            f"all {n_students} reruns of Attention have finished, warm (median of {len(warm.last)} rounds)",
            f"≤ {SECONDS:g} s",
            f"{seconds:.2f} s (worst {max(warm.last):.2f} s, {statistics.median(warm.server):.2f} s of processor time)",
            seconds <= SECONDS,
        ),
        Goal("more memory for each session", f"< {MEGABYTES:g} MB", f"{each:.2f} MB", each < MEGABYTES),
        Goal("memory when all have left", f"within {SHARE:.0%} of {base:.0f} MB", f"{rest:+.1%}", abs(rest) <= SHARE),
        Goal("somebody else's sentence, edit or numbers", "none", str(len(complaints) or "none"), not complaints),
    ]


def public_server_goals(start: float, rest: float, peak: float) -> list[Goal]:
    """Return the goals of a public server.

    These are seconds from the start to the first answer, megabytes at that point, and peak megabytes with the class.
    """
    return [
        Goal("from the start to the first answer", f"≤ {START:g} s", f"{start:.1f} s", start <= START),
        Goal("memory at rest, after the start", f"< {REST:g} MB", f"{rest:.0f} MB", 0 < rest < REST),
        Goal("most memory with the class", f"< {CLASS:g} MB", f"{peak:.0f} MB", 0 < peak < CLASS),
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the load test and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.load", description=__doc__.split("\n")[0])
    parser.add_argument("--students", type=int, default=STUDENTS)
    add_server_options(parser)
    parser.add_argument(
        "--wait", type=float, default=KEPT_SECONDS + 5, help="seconds after a lesson until sessions are gone"
    )
    parser.add_argument("--public", action="store_true", help="deploy.serve with GLASSFORMER_PUBLIC=1, and its memory")
    parser.add_argument("--json", action="store_true", help="print everything that was measured as JSON, nothing else")
    parser.add_argument("--tabs", type=int, default=0, help="measure what so many open tabs keep, and nothing else")
    parser.add_argument("--checkpoints", type=Path, help="with --tabs: the folder of those that are opened in turn")
    options = parser.parse_args(arguments)
    if not 1 <= options.students <= MAX_STUDENTS:
        parser.error(f"--students is {options.students}; choose 1 to {MAX_STUDENTS}")
    say = (lambda text: None) if options.json else (lambda text: print(text, flush=True))
    if options.tabs:
        held = measure_tabs(options.tabs, options.checkpoints, port=options.port, say=say)
        if options.json:
            print(json.dumps({moment: asdict(one) for moment, one in held.items()}, indent=2))
        return 0
    entry = "deploy.serve" if options.public else options.entry
    environment = {"GLASSFORMER_PUBLIC": "1"} if options.public else {}
    settings = [*options.options]
    if entry == "streamlit run":  # the app's own setting is an hour
        settings.append(f"--server.disconnectedSessionTTL={KEPT_SECONDS}")
    with AppServer(entry, port=options.port, options=settings, environment=environment) as server:
        found = asyncio.run(
            measure(server, n_students=options.students, keep_seconds=options.wait, say=say, public=options.public)
        )
        if found["complaints"]:
            found["log"] = server.last_lines(40)
    if options.json:
        print(json.dumps(found, indent=2, ensure_ascii=False))
    else:
        report(found)
    return 1 if found["complaints"] else 0


def report(found: dict) -> None:
    """Print the goals as a table, and all problems."""
    print(f"\n{'':<78}{'goal':<24}measured")
    for goal in found["goals"]:
        print(f"{goal['what']:<78}{goal['goal']:<24}{goal['measured']}: {'met' if goal['met'] else 'MISSED'}")
    for text in found["complaints"][:20]:
        print(text)
    for line in found.get("log", ()):
        print("    server:", line)


if __name__ == "__main__":
    sys.exit(main())
