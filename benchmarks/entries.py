"""The two ways to start the app, for measurements: on a free loopback port, stopped at the end."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
PATIENCE = 120.0  # seconds
ENTRIES = {
    "streamlit run": ("streamlit", "run", "{script}", "--server.fileWatcherType=none", "--server.port={port}"),
    "deploy.serve": ("deploy.serve", "--port={port}"),
}


@contextmanager
def started(
    entry: str, *, script: str = "app.py", environment: Mapping[str, str] | None = None
) -> Iterator[tuple[int, float]]:
    """Start one of ``ENTRIES`` → its port, and the seconds from there to its first answer.

    ``script``: what ``streamlit run`` runs, if not the app.
    Raises ``RuntimeError`` with the last lines of what it said where it does not answer.
    """
    port = _free_port()
    command = [sys.executable, "-m", *(part.format(port=port, script=script) for part in ENTRIES[entry])]
    begun = time.perf_counter()
    with subprocess.Popen(
        command,
        cwd=REPOSITORY,
        env={**os.environ, **(environment or {})},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            _wait(process, f"http://127.0.0.1:{port}/_stcore/health", entry)
            yield port, time.perf_counter() - begun
        finally:
            process.terminate()
            try:
                process.communicate(timeout=20)
            except subprocess.TimeoutExpired:
                process.kill()


def _wait(process: subprocess.Popen, address: str, entry: str) -> None:
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end and process.poll() is None:
        try:
            with urllib.request.urlopen(address, timeout=5):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.02)
    process.kill()
    said = process.communicate()[1].splitlines()[-15:]
    raise RuntimeError("\n".join((f"{entry} did not answer at {address}; its last lines are", *said)))


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]
