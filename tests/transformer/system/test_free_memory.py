"""The memory that is free in a container is that of its control group, not that of the machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from transformer.system import memory
from transformer.system.memory import _free_in_group, free_memory

MB = 1_000_000


def group(folder: Path, files: tuple[str, str, str], most: object, used: int, cached: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    limit, current, reclaimable = files
    (folder / limit).write_text(f"{most}\n")
    (folder / current).write_text(f"{used}\n")
    (folder / "memory.stat").write_text(f"anon 3\n{reclaimable} {cached}\n")


@pytest.mark.parametrize(
    ("line", "files", "top"),
    [
        ("0::{}", memory._VERSION_2, ""),
        ("7:cpu,cpuacct:/else\n5:hugetlb,memory:{}", memory._VERSION_1, "memory"),
    ],
)
def test_the_limit_of_a_container_counts(line: str, files: tuple[str, str, str], top: str, tmp_path: Path) -> None:
    root, groups = tmp_path / "cgroup", tmp_path / "groups"
    # The names are the host's; the group of the container is the root.
    group(root / top, files, 1500 * MB, 600 * MB, 100 * MB)
    groups.write_text(line.format("/system/docker-0123") + "\n")
    assert _free_in_group(root, groups) == 1000 * MB
    # A group inside has no limit of its own.
    group(root / top / "system", files, "max" if not top else 2**63 - 4096, 500 * MB, 0)
    assert _free_in_group(root, groups) == 1000 * MB
    # A narrower one.
    group(root / top / "system" / "docker-0123", files, 700 * MB, 690 * MB, 0)
    assert _free_in_group(root, groups) == 10 * MB
    group(root / top / "system" / "docker-0123", files, 700 * MB, 710 * MB, 0)
    assert _free_in_group(root, groups) == 0


def test_without_groups_the_machine_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert _free_in_group(tmp_path, tmp_path / "nothing") == memory._NO_LIMIT
    (tmp_path / "groups").write_text("0::/\n3:cpu:/x\n")
    assert _free_in_group(tmp_path, tmp_path / "groups") == memory._NO_LIMIT
    assert 0 < free_memory() < 2**50
    monkeypatch.setattr(memory, "_free_in_group", lambda *_: 7)
    assert free_memory() == 7
