"""A server that is stopped while it computes ends quickly, with all its processes and uploads."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.harness.app_server import ENTRIES, AppServer
from tests.harness.browser_session import BrowserSession
from tests.harness.process_memory import descendants
from tests.own_thread import in_own_thread
from ui.server.streamlit_private import SCRIPT_THREAD

UPLOAD = f"received-{'0123456789abcdef' * 4}"


def folders(temporary: Path) -> set[Path]:
    return {path for path in temporary.glob("glassformer-uploads-*") if path.is_dir()}


@contextmanager
def process_with_folder(temporary: Path, before: set[Path]) -> Iterator[tuple[subprocess.Popen, set[Path]]]:
    """Run what a server runs about its folder, without the server; yield it and its folder."""
    code = "from ui.server import upload_folders as f; f.remove_folders_at_sigterm(); print(f.new_folder()); input()"
    streams = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "cwd": ROOT}
    environment = {**os.environ, "TMPDIR": str(temporary)}
    with subprocess.Popen([sys.executable, "-c", code], env=environment, **streams) as process:
        try:
            process.stdout.readline()
            (own,) = folders(temporary) - before
            (own / UPLOAD).mkdir()
            yield process, {own}
        finally:
            process.kill()


@pytest.mark.slow
@pytest.mark.sample
@pytest.mark.parametrize("entry", sorted(ENTRIES))
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=lambda number: number.name)
def test_it_ends_in_the_middle_of_a_training_and_a_sweep(entry: str, number: signal.Signals, tmp_path: Path) -> None:
    """It removes its uploads and those of a killed server, but not those of a server that runs."""
    with process_with_folder(tmp_path, set()) as (killed, one), process_with_folder(tmp_path, one) as (stays, two):
        killed.kill()
        killed.wait()
        assert folders(tmp_path) == one | two, "nobody could remove it"
        with AppServer(entry, environment={"TMPDIR": str(tmp_path), "OMP_NUM_THREADS": "1"}) as server:
            children, at_the_end = in_own_thread(asyncio.run, compute_and_end(server, number, tmp_path))
            assert server._process.wait(timeout=60) in (0, -number), server.last_lines(20)
            said = "\n".join(server.last_lines(400))
        assert at_the_end > two and len(at_the_end) == 2 and not at_the_end & one, "only what was abandoned is removed"
        assert folders(tmp_path) == two
        stays.terminate()
        stays.wait()
    assert "terminate called" not in said and "Traceback" not in said
    assert not [path.name for path in tmp_path.glob("glassformer*")]
    end = time.monotonic() + 60  # the nursery may still be importing its libraries
    while any(Path(f"/proc/{child}").exists() for child in children):
        assert time.monotonic() < end, "a child process is left"
        time.sleep(0.2)


async def compute_and_end(server: AppServer, number: signal.Signals, temporary: Path) -> tuple[set[int], set[Path]]:
    """Start two trainings, open two pages that compute, and send the signal.

    Returns:
        The child processes, and the folders of uploads, of which one holds a file.
    """
    tabs = [BrowserSession(server.base) for _ in range(5)]
    await tabs[4].open("checkpoint", {"checkpoint": UPLOAD})
    for seed, tab in enumerate(tabs[:2]):
        await tab.open("training", {"training section": "now", "toy seed": str(seed)})
        await tab.click("toy start")
    pages = [asyncio.create_task(tab.open(page, {"sentence": "A bird sings."})) for tab, page in zip(
        tabs[2:4], ("surgery", "attention"), strict=True)]  # fmt: skip
    await asyncio.sleep(3)
    children, uploads = descendants(server._process.pid), folders(temporary)
    for folder in uploads:
        (folder / "file").write_text("x")
    os.kill(server._process.pid, number)
    for page in pages:
        page.cancel()
    return children, uploads


def test_the_threads_of_pages_have_the_name_that_is_waited_for() -> None:
    import inspect

    from streamlit.runtime.scriptrunner import script_runner

    assert f'name="{SCRIPT_THREAD}"' in inspect.getsource(script_runner)
