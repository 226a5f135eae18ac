"""A server of the app for as long as something is measured, without a look at what it prints."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from benchmarks.app_server import ENTRIES, AppServer

__all__ = ["ENTRIES", "started"]


@contextmanager
def started(
    entry: str, *, script: str = "app.py", environment: Mapping[str, str] | None = None
) -> Iterator[tuple[int, float]]:
    """Start one of ``ENTRIES`` → its port, and the seconds from there to its first answer.

    ``script``: what ``streamlit run`` runs, if not the app.
    Raises ``RuntimeError`` with the last lines of what it said where it does not answer.
    """
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "server.log"
        with AppServer(log=log, entry=entry, script=script, environment=environment) as server:
            yield server.port, server.start_seconds
