"""A server that is stopped during a computation ends quickly, cleanly and with all its processes."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from pathlib import Path

import pytest

from tests.harness.app_server import ENTRIES, AppServer
from tests.harness.browser_session import BrowserSession
from tests.harness.process_memory import descendants
from tests.nights import TURN
from tests.own_thread import in_own_thread
from ui.server.streamlit_private import SCRIPT_THREAD

# Each entry with the signal that ends it most often: a key on a laptop, a container that stops. They take turns.
MOST_OFTEN = (("streamlit run", signal.SIGINT), ("deploy.serve", signal.SIGTERM))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("entry", "number"),
    [
        pytest.param(
            entry,
            number,
            id=f"{entry}-{number.name}",
            marks=() if (entry, number) == MOST_OFTEN[TURN % 2] else pytest.mark.nightly,
        )
        for entry in sorted(ENTRIES)
        for number in (signal.SIGTERM, signal.SIGINT)
    ],
)
def test_it_ends_in_the_middle_of_a_training_and_a_sweep(entry: str, number: signal.Signals, tmp_path: Path) -> None:
    with AppServer(entry, environment={"TMPDIR": str(tmp_path), "OMP_NUM_THREADS": "1"}) as server:
        children = in_own_thread(asyncio.run, compute_and_end(server, number))
        assert server._process.wait(timeout=60) in (0, -number), server.last_lines(20)
        said = "\n".join(server.last_lines(400))
    assert "terminate called" not in said and "Traceback" not in said
    assert not [path.name for path in tmp_path.glob("glassformer*")]
    end = time.monotonic() + 60  # the nursery may still be importing its libraries
    while any(Path(f"/proc/{child}").exists() for child in children):
        assert time.monotonic() < end, "a child process is left"
        time.sleep(0.2)


async def compute_and_end(server: AppServer, number: signal.Signals) -> set[int]:
    """Start two trainings, open two pages that compute, and send the signal; return the child processes."""
    tabs = [BrowserSession(server.base) for _ in range(4)]
    for seed, tab in enumerate(tabs[:2]):
        await tab.open("training", {"training section": "now", "toy seed": str(seed)})
        await tab.click("toy start")
    pages = [asyncio.create_task(tab.open(page, {"sentence": "A bird sings."})) for tab, page in zip(
        tabs[2:], ("surgery", "attention"), strict=True)]  # fmt: skip
    await asyncio.sleep(3)
    children = descendants(server._process.pid)
    os.kill(server._process.pid, number)
    for page in pages:
        page.cancel()
    return children


def test_the_threads_of_pages_have_the_name_that_is_waited_for() -> None:
    import inspect

    from streamlit.runtime.scriptrunner import script_runner

    assert f'name="{SCRIPT_THREAD}"' in inspect.getsource(script_runner)
