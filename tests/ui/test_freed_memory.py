"""Memory that a long-lived server frees is returned to the system."""

from __future__ import annotations

import os
import platform
import subprocess
import sys

import pytest

from tests.conftest import ROOT

BEGIN = """
from resource import RUSAGE_SELF, getrusage
import numpy as np
from tests.harness.process_memory import status_megabytes
from ui.server.freed_memory import give_back_what_is_freed, reuse_freed_memory
give_back_what_is_freed()
"""
# What is freed, by a script; and the most megabytes, page faults, or both (1,000 for each megabyte) that it may print.
SCRIPTS = {
    "large blocks between small ones that stay, of which glibc's heaps keep all 200 MB by default": (
        """
first, kept = np.ones(3_000_000 // 8), []
del first  # from now on glibc would take blocks of that size from a heap
before = status_megabytes("VmRSS")
blocks = []
for _ in range(70):
    blocks.append(np.ones(3_000_000 // 8))
    kept.append(bytearray(100_000))
blocks.clear()
print(status_megabytes("VmRSS") - before)
""",
        60,
    ),
    "a pass after a pass, each of which has a page fault for every 4 KB by default": (
        """
for _ in range(3):
    before = getrusage(RUSAGE_SELF).ru_minflt
    blocks = [np.ones(1_000_000 // 8) for _ in range(25)]
    del blocks
    faults = getrusage(RUSAGE_SELF).ru_minflt - before
print(faults)
""",
        600,  # of 6,100 pages
    ),
    "the layers of a long text, of which outside of the heaps each block would have 730 new pages": (
        """
memory = status_megabytes("VmRSS")
with reuse_freed_memory():
    for _ in range(3):
        before = getrusage(RUSAGE_SELF).ru_minflt
        blocks = [np.ones(3_000_000 // 8) for _ in range(20)]  # NumPy asks for larger pages only from 4 MB on
        del blocks
        faults = getrusage(RUSAGE_SELF).ru_minflt - before
print(faults + 1000 * (status_megabytes("VmRSS") - memory))
""",
        10_000,  # of 14,650 pages for each layer, and of 60 MB
    ),
    "traces that the store drops, smaller than blocks outside of the heaps, with others between them": (
        """
from ui.compute.store import Store
store, kept = Store({"traces": 300_000_000, "results": 1}), []
before = status_megabytes("VmRSS")
for number in range(200):
    store.keep(number, "result", np.ones(1_000_000 // 8))
    kept.append(bytearray(100_000))
store.give_up("results")
print(status_megabytes("VmRSS") - before)
""",
        60,
    ),
}


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another library gives back what it likes")
@pytest.mark.parametrize(("script", "most"), SCRIPTS.values(), ids=SCRIPTS)
def test_what_is_freed_goes_back_to_the_system_and_is_used_again(script: str, most: int) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MALLOC_")}
    command = [sys.executable, "-c", BEGIN + script]
    run = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    assert float(run.stdout) < most
