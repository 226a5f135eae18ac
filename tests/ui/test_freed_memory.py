"""Memory that a long-lived server frees is returned to the system."""

from __future__ import annotations

import os
import platform
import subprocess
import sys

import pytest

from tests.conftest import ROOT

GLIBC = pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another library gives back what it likes")


def printed_by(script: str) -> float:
    """Return the number that a script prints in a process of its own."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MALLOC_")}
    run = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )
    return float(run.stdout)


@GLIBC
def test_what_is_freed_goes_back_to_the_system() -> None:
    """Large blocks between small ones that stay: by default, glibc's heaps kept all 200 MB."""
    script = """
import numpy as np
from tests.harness.process_memory import status_megabytes
from ui.server.freed_memory import give_back_what_is_freed
give_back_what_is_freed()
first, kept = np.ones(3_000_000 // 8), []
del first  # from now on glibc would take blocks of that size from a heap
before = status_megabytes("VmRSS")
blocks = []
for _ in range(70):
    blocks.append(np.ones(3_000_000 // 8))
    kept.append(bytearray(100_000))
blocks.clear()
print(status_megabytes("VmRSS") - before)
"""
    assert printed_by(script) < 60  # megabytes


@GLIBC
def test_a_pass_uses_the_memory_of_the_pass_before_again() -> None:
    """By default glibc returns it at once, and each pass causes a page fault for every 4 KB."""
    script = """
from resource import RUSAGE_SELF, getrusage
import numpy as np
from ui.server.freed_memory import give_back_what_is_freed
give_back_what_is_freed()
for _ in range(3):
    before = getrusage(RUSAGE_SELF).ru_minflt
    blocks = [np.ones(1_000_000 // 8) for _ in range(25)]
    del blocks
    faults = getrusage(RUSAGE_SELF).ru_minflt - before
print(faults)
"""
    assert printed_by(script) < 600  # of 6,100 pages


@GLIBC
def test_the_layers_of_a_long_text_use_the_same_memory_and_return_it() -> None:
    """Outside of the heaps, each block would have 730 new pages.

    NumPy asks for larger pages only from 4 MB on.
    """
    script = """
from resource import RUSAGE_SELF, getrusage
import numpy as np
from tests.harness.process_memory import status_megabytes
from ui.server.freed_memory import give_back_what_is_freed, reuse_freed_memory
give_back_what_is_freed()
memory = status_megabytes("VmRSS")
with reuse_freed_memory():
    for _ in range(3):
        before = getrusage(RUSAGE_SELF).ru_minflt
        blocks = [np.ones(3_000_000 // 8) for _ in range(20)]
        del blocks
        faults = getrusage(RUSAGE_SELF).ru_minflt - before
print(faults + 1000 * (status_megabytes("VmRSS") - memory))
"""
    assert printed_by(script) < 10_000  # of 14,650 pages for each layer, and of 60 MB


@GLIBC
def test_traces_that_the_store_drops_leave_no_holes_in_memory() -> None:
    """Blocks of a recording are smaller than those outside of the heaps, and others lie between them."""
    script = """
import numpy as np
from tests.harness.process_memory import status_megabytes
from ui.compute.store import Store
from ui.server.freed_memory import give_back_what_is_freed
give_back_what_is_freed()
store, kept = Store({"traces": 300_000_000, "results": 1}), []
before = status_megabytes("VmRSS")
for number in range(200):
    store.keep(number, "result", np.ones(1_000_000 // 8))
    kept.append(bytearray(100_000))
store.give_up("results")
print(status_megabytes("VmRSS") - before)
"""
    assert printed_by(script) < 60  # megabytes
