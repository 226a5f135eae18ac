"""Whether a model fits into memory, known before a number of it is read."""

import os
from pathlib import Path

from transformer.errors import NotEnoughMemoryError

_BYTES = 4  # of a float32


def check_memory(folder: Path, n_numbers: int) -> None:
    """Refuse weights of so many numbers that are larger than the memory that is free."""
    needed, free = _BYTES * n_numbers, free_memory()
    if needed > free:
        raise NotEnoughMemoryError(
            "{folder} needs {needed} GB of memory, and {free} GB are free",
            folder=folder,
            needed=f"{needed / 1e9:.1f}",
            free=f"{free / 1e9:.1f}",
        )


def free_memory() -> int:
    """Bytes that can be allocated: Linux says so; elsewhere what the machine has, or no limit."""
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError, AttributeError):
        return 2**63
