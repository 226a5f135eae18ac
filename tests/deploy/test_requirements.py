"""The packages of the README's two commands are locked, within the ranges they are compiled from."""

from __future__ import annotations

import re
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]
LOCKS = ("requirements", "requirements-dev")
RAISED = "after a change of ranges the lock is compiled again: CONTRIBUTING.md, Testing"


def read(name: str) -> list[Requirement]:
    """Return the lines of a file and of the range files that it includes."""
    found = []
    for line in (ROOT / name).read_text(encoding="utf-8").splitlines():
        line = line.partition("#")[0].strip()
        if line.startswith("-r "):
            found += read(line[3:].replace("requirements.txt", "requirements.in"))
        elif line:
            found.append(Requirement(line))
    return found


def pins(lock: str) -> dict[str, list[tuple[str, Requirement]]]:
    """Return every locked version by the name of its package."""
    found: dict[str, list[tuple[str, Requirement]]] = {}
    for requirement in read(f"{lock}.txt"):
        (exact,) = requirement.specifier
        assert exact.operator == "==" and "*" not in exact.version, f"{requirement} is no exact version"
        found.setdefault(canonicalize_name(requirement.name), []).append((exact.version, requirement))
    return found


@pytest.mark.parametrize("lock", LOCKS)
def test_the_lock_fits_the_ranges(lock: str) -> None:
    locked = pins(lock)
    for requirement in read(f"{lock}.in"):
        found = locked.get(canonicalize_name(requirement.name))
        assert found, f"{requirement} is not locked; {RAISED}"
        assert all(requirement.specifier.contains(pinned) for pinned, _ in found), f"{requirement}: {found}; {RAISED}"


@pytest.mark.parametrize("lock", LOCKS)
def test_the_lock_is_whole(lock: str) -> None:
    """The dependencies of locked packages are locked, too, in a version that they accept.

    Known for packages that are installed here in the locked version. setuptools is left to torch.
    """
    locked = pins(lock)
    for name, found in locked.items():
        for pinned, _ in found:
            try:
                if version(name).split("+")[0] != pinned:
                    continue
            except PackageNotFoundError:  # the package is for another system or Python version
                continue
            for needed in map(Requirement, requires(name) or ()):
                if needed.marker and not needed.marker.evaluate({"extra": ""}):
                    continue
                other = canonicalize_name(needed.name)
                if other == "setuptools":
                    continue
                assert other in locked, f"{name} needs {needed}, which is not locked; {RAISED}"
                assert any(needed.specifier.contains(v, prereleases=True) for v, _ in locked[other]), (
                    f"{name}: {needed}"
                )


@pytest.mark.parametrize("lock", LOCKS)
def test_the_lock_brings_no_gpu_libraries(lock: str) -> None:
    """CUDA packages are gigabytes and do not exist on other systems. No version has a local build label."""
    locked = pins(lock)
    assert [name for name in locked if re.search("nvidia|cuda|triton|cupy|rocm", name)] == []
    assert not any("+" in pinned for found in locked.values() for pinned, _ in found)


def test_the_tests_run_with_the_versions_of_the_app() -> None:
    app, dev = pins("requirements"), pins("requirements-dev")
    assert {name: dev.get(name) for name in app} == app
