"""An hour of classes: does the memory of the server grow, does it slow down, does anything go wrong?

    python -m benchmarks.soak --minutes 60 --students 10 --out soak.csv

Every minute a class comes, all at once; every student walks through all pages with new sentences and an edit of their
own, steps a text, and leaves. One line a minute is added to the file as it goes, so a stop loses nothing. The last line
says by how much memory grows in an hour, over the second half, when the caches are full. Exits with 1 where anything
went wrong on a page, or a student received something that belongs to another.
"""

import argparse
import asyncio
import csv
import statistics
import sys
import time
from collections.abc import Awaitable, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from benchmarks.app_server import AppServer, add_server_options
from benchmarks.runs import Run, attempt
from benchmarks.students import MAX_STUDENTS, Student

MINUTE = 60.0  # seconds
ON_PAGES = {
    "attention": (lambda student: student.write(1), lambda student: student.write(0)),
    "surgery": (Student.cut,),
    "decoding": tuple(lambda student, step=step: student.step(step) for step in (1, 2, 3)),
}


@dataclass(frozen=True)
class Minute:
    """One class. ``megabytes``: of the server, after the class has left. ``slowest`` in seconds, and on which page;
    ``processor``: the share of one core that the server used."""

    minute: int
    megabytes: float
    runs: int
    median: float
    slowest: float
    slowest_page: str
    processor: float
    errors: int


async def walk(student: Student) -> tuple[list[tuple[float, str]], list[str]]:
    """One student's way through all pages: seconds of each rerun with its page, and what was wrong."""
    seconds: list[tuple[float, str]] = []
    complaints: list[str] = []

    async def note(page: str, action: Awaitable[Run]) -> None:
        run = await attempt(action)
        seconds.append((run.seconds, page))
        complaints.extend(f"{page}: {text}" for text in student.complaints(run))

    async with student.session:
        await note("overview", student.open())
        for page in [name for name in student.session.pages if name]:
            await note(page, student.session.go_to(page))
            for act in ON_PAGES.get(page, ()):
                await note(page, act(student))
    return seconds, complaints


async def one_class(server: AppServer, minute: int, n_students: int) -> tuple[Minute, list[str]]:
    """A class that comes in this minute: all at once, with sentences that no class before it had."""
    before, start = server.processor_seconds, time.monotonic()
    students = [Student(number, server.base, lesson=minute) for number in range(n_students)]
    walks = await asyncio.gather(*map(walk, students))
    await asyncio.sleep(1)
    processor = (server.processor_seconds - before) / (time.monotonic() - start)
    seconds = [one for times, _ in walks for one in times]
    complaints = [text for _, found in walks for text in found]
    slowest, page = max(seconds, default=(0.0, "none"))
    median = statistics.median(value for value, _ in seconds) if seconds else 0.0
    line = Minute(
        minute=minute,
        megabytes=round(server.megabytes, 1),
        runs=len(seconds),
        median=round(median, 3),
        slowest=round(slowest, 2),
        slowest_page=page,
        processor=round(processor, 2),
        errors=len(complaints),
    )
    return line, complaints


async def soak(server: AppServer, *, minutes: int, n_students: int, out: Path) -> list[Minute]:
    """A class each minute (the next as soon as one is over, where it takes longer); a line each in ``out``."""
    lines: list[Minute] = []
    names = [field.name for field in fields(Minute)]
    with out.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, names)
        writer.writeheader()
        print("".join(f"{name:>13}" for name in names), flush=True)
        for minute in range(1, minutes + 1):
            start = time.monotonic()
            line, complaints = await one_class(server, minute, n_students)
            lines.append(line)
            writer.writerow(asdict(line))
            file.flush()
            print("".join(f"{value!s:>13}" for value in asdict(line).values()), flush=True)
            for text in complaints[:5]:
                print(f"    {text}", flush=True)
            if not server.alive:
                print("    the server has ended", flush=True)
                break
            if minute < minutes:
                await asyncio.sleep(max(0.0, MINUTE - (time.monotonic() - start)))
    return lines


def growth(lines: Sequence[Minute]) -> float:
    """Megabytes an hour: slope of a straight line through the second half. 0 where that has fewer than two lines."""
    half = lines[len(lines) // 2 :]
    if len(half) < 2:
        return 0.0
    return 60 * statistics.linear_regression([one.minute for one in half], [one.megabytes for one in half]).slope


def conclusion(lines: Sequence[Minute], n_students: int) -> str:
    """What came out, in a sentence or two."""
    errors, runs = sum(one.errors for one in lines), sum(one.runs for one in lines)
    first, last = lines[0], lines[-1]
    return (
        f"{len(lines)} classes of {n_students}: {runs:,} reruns, {errors} errors, the slowest "
        f"{max(one.slowest for one in lines):.2f} s. Memory: {first.megabytes:.0f} MB after the first class, "
        f"{last.megabytes:.0f} MB after the last; over the second half {growth(lines):+.0f} MB an hour."
    )


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.soak", description=__doc__.split("\n")[0])
    parser.add_argument("--minutes", type=int, default=60)
    parser.add_argument("--students", type=int, default=10)
    parser.add_argument("--out", type=Path, default=Path("soak.csv"), help="where the lines go (default: soak.csv)")
    add_server_options(parser)
    options = parser.parse_args(arguments)
    for name, most in (("minutes", 24 * 60), ("students", MAX_STUDENTS)):
        if not 1 <= getattr(options, name) <= most:
            parser.error(f"--{name} is {getattr(options, name)}; choose 1 to {most}")
    with AppServer(options.entry, port=options.port, options=options.options) as server:
        lines = asyncio.run(soak(server, minutes=options.minutes, n_students=options.students, out=options.out))
        if wrong := any(line.errors for line in lines):
            print("    server:", *server.last_lines(40), sep="\n    ")
    print(conclusion(lines, options.students))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
