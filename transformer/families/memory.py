"""A check that a model fits into memory, before any weight is read."""

import os
from pathlib import Path

from transformer.errors import NotEnoughMemoryError


def check_memory(folder: Path, needed: int) -> None:
    """Raise ``NotEnoughMemoryError`` if weights of ``needed`` bytes do not fit into the free memory."""
    free = free_memory()
    if needed > free:
        raise NotEnoughMemoryError(
            "{folder} needs {needed} GB of memory, and {free} GB are free",
            folder=folder,
            needed=f"{needed / 1e9:.1f}",
            free=f"{free / 1e9:.1f}",
        )


def free_memory() -> int:
    """Return the bytes that can be allocated: MemAvailable on Linux, elsewhere all memory if known."""
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
