"""Memory of a process, by Linux."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path


def status_megabytes(field: str, process: int | str = "self") -> float:
    """Return "VmRSS", the resident memory, or "VmHWM", its largest value; 0 if the process has ended."""
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    found = [int(line.split()[1]) for line in lines if line.startswith(f"{field}:")]
    return found[0] * 1024 / 1e6 if found else 0.0


@dataclass(frozen=True)
class Held:
    """Resources of a process: resident megabytes, threads, file descriptors, and child processes."""

    megabytes: float
    threads: int
    descriptors: int
    processes: int

    @classmethod
    def by(cls, process: int) -> Held:
        """Return the resources of a running process; ``processes`` counts all descendants."""
        folder = Path(f"/proc/{process}")
        return cls(
            megabytes=status_megabytes("VmRSS", process),
            threads=len([*(folder / "task").iterdir()]),
            descriptors=len([*(folder / "fd").iterdir()]),
            processes=len(descendants(process)),
        )

    def __str__(self) -> str:
        return f"{self.megabytes:8.0f} MB{self.threads:6} threads{self.descriptors:6} files{self.processes:6} processes"


def descendants(process: int) -> set[int]:
    """Return the processes that a process has begun, and those that they have begun."""
    parents = {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        with suppress(FileNotFoundError, ProcessLookupError):  # the process may have ended meanwhile
            parents[int(status.parent.name)] = int(status.read_text().rpartition(")")[2].split()[1])
    found, new = set(), {process}
    while new:
        new = {child for child, parent in parents.items() if parent in new} - found
        found |= new
    return found
