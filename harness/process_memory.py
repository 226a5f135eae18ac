"""How much memory a process takes, by Linux."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path


def status_megabytes(field: str, process: int | str = "self") -> float:
    """``field``: "VmRSS", what is resident now, or "VmHWM", the most that was. 0 when the process has ended."""
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    found = [int(line.split()[1]) for line in lines if line.startswith(f"{field}:")]
    return found[0] * 1024 / 1e6 if found else 0.0


@dataclass(frozen=True)
class Held:
    """What a process holds at one moment: resident megabytes, threads, file descriptors, and processes begun by it."""

    megabytes: float
    threads: int
    descriptors: int
    processes: int

    @classmethod
    def by(cls, process: int) -> Held:
        """Ask Linux about a running process. ``processes`` counts those that its own have begun, too."""
        folder = Path(f"/proc/{process}")
        return cls(
            megabytes=status_megabytes("VmRSS", process),
            threads=len([*(folder / "task").iterdir()]),
            descriptors=len([*(folder / "fd").iterdir()]),
            processes=len(_descendants(process)),
        )

    def __str__(self) -> str:
        return f"{self.megabytes:8.0f} MB{self.threads:6} threads{self.descriptors:6} files{self.processes:6} processes"


def _descendants(process: int) -> set[int]:
    parents = {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        with suppress(FileNotFoundError, ProcessLookupError):  # it has ended meanwhile
            parents[int(status.parent.name)] = int(status.read_text().rpartition(")")[2].split()[1])
    found, new = set(), {process}
    while new:
        new = {child for child, parent in parents.items() if parent in new} - found
        found |= new
    return found
