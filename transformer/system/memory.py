"""A check that a model fits into memory, before any weight is read."""

import os
from pathlib import Path

from transformer.errors import NotEnoughMemoryError

_NO_LIMIT = 2**63
# Files of a control group with its limit and its use, and what counts as used but can be taken back.
_VERSION_2 = ("memory.max", "memory.current", "inactive_file")
_VERSION_1 = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")


def check_memory(folder: Path, needed: int) -> None:
    """Raise ``NotEnoughMemoryError`` if weights of ``needed`` bytes do not fit into the free memory."""
    free = free_memory()
    if needed > free:
        raise NotEnoughMemoryError(f"{folder} needs {needed / 1e9:.1f} GB of memory, and {free / 1e9:.1f} GB are free")


def free_memory() -> int:
    """Return the bytes that can be allocated, within the limit of a container.

    On Linux this is MemAvailable, or less in a control group; elsewhere it is the total memory, if known.
    """
    return min(_free_on_machine(), _free_in_group(Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")))


def _free_on_machine() -> int:
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError, AttributeError):
        return _NO_LIMIT


def _free_in_group(root: Path, groups: Path) -> int:
    """Return the memory that is left within the limits of this process's control group and of its parents.

    Inside a container, the names in ``groups`` may be those of the host, and the container's own group is ``root``.

    Args:
        root: Where control groups are mounted.
        groups: File that names the groups of this process.
    """
    free = _NO_LIMIT
    try:
        lines = groups.read_text().splitlines()
    except OSError:
        return free
    for line in lines:
        _, kinds, name = line.split(":", 2)
        if kinds and "memory" not in kinds.split(","):
            continue
        top = root / "memory" if kinds else root
        group = top / name.strip("/")
        for folder in {top, group, *(parent for parent in group.parents if parent.is_relative_to(top))}:
            free = min(free, _left_in(folder, *(_VERSION_1 if kinds else _VERSION_2)))
    return free


def _left_in(group: Path, limit: str, used: str, reclaimable: str) -> int:
    """Return the limit of one group minus what it uses; cached files do not count as used."""
    try:
        most, taken = int((group / limit).read_text()), int((group / used).read_text())
        statistics = dict(line.split() for line in (group / "memory.stat").read_text().splitlines())
    except (OSError, ValueError):  # no such group, or "max": it has no limit
        return _NO_LIMIT
    return max(0, most - taken + int(statistics.get(reclaimable, 0)))
