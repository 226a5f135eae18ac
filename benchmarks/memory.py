"""What a small public server needs: seconds until it serves, memory at rest, and with thirty students.

    python -m benchmarks.memory
    python -m benchmarks.memory --within "systemd-run --scope -p MemoryMax=1500M -p MemorySwapMax=0"

``--within``: a command that runs the server's command under a limit, in the same process (``exec``): the kernel then
ends a server that needs more, and this program says so. Memory is resident memory (RSS, mapped files included).
The students work through the lesson of ``benchmarks.load``. Exits with 1 where a goal is missed.
"""

import argparse
import asyncio
import shlex
import sys
from collections.abc import Sequence

from benchmarks.app_server import AppServer
from benchmarks.load import STUDENTS, Goal, conclude, hold
from benchmarks.students import MAX_STUDENTS, Student

START, REST, CLASS = 30.0, 700.0, 1500.0  # the goals: seconds, megabytes, megabytes
PUBLIC = {"GLASSFORMER_PUBLIC": "1"}


async def measure(server: AppServer, n_students: int) -> list[Goal]:
    """One lesson, everybody together; the server is as new as it starts."""
    start, rest = server.start_seconds, server.megabytes
    students = [Student(number, server.base) for number in range(n_students)]
    lesson = await hold(server, students, say=lambda text: None)
    served = sum(len(student.screens) for student in students)
    for student in students:
        await student.session.close()
    peak, alive = server.peak_megabytes, server.alive and not lesson.complaints
    return [
        Goal("from the start to the first answer", f"≤ {START:g} s", f"{start:.1f} s", start <= START),
        Goal("memory at rest, after the start", f"< {REST:g} MB", f"{rest:.0f} MB", 0 < rest < REST),
        Goal(f"most memory with {n_students} students", f"< {CLASS:g} MB", f"{peak:.0f} MB", 0 < peak < CLASS),
        Goal("every screen of everybody right", "all", f"{served} screens, {len(lesson.complaints)} complaints", alive),
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.memory", description=__doc__.split("\n")[0])
    parser.add_argument("--students", type=int, default=STUDENTS, help=f"(default: {STUDENTS})")
    parser.add_argument("--within", default="", help="a command that runs the server's command under a limit")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON, nothing else")
    options = parser.parse_args(arguments)
    if not 1 <= options.students <= MAX_STUDENTS:
        parser.error(f"--students is {options.students}; choose 1 to {MAX_STUDENTS}")
    with AppServer("deploy.serve", environment=PUBLIC, within=shlex.split(options.within)) as server:
        goals = asyncio.run(measure(server, options.students))
    return conclude(goals, "{what:<40}{goal:<14}{verdict}", as_json=options.json)


if __name__ == "__main__":
    sys.exit(main())
