"""The app as a server for measurements, on a free loopback port, with its memory and processor time."""

from __future__ import annotations

import argparse
import itertools
import os
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tests.harness.process_memory import Held, status_megabytes
from transformer.system.python_process import start_python

REPOSITORY = Path(__file__).resolve().parents[2]
START_SECONDS = 300.0
ENTRIES = {
    "streamlit run": ("streamlit", "run", "{script}", "--server.port={port}"),
    "deploy.serve": ("deploy.serve", "--port={port}"),
}


class AppServer:
    """A running server: ``with AppServer() as server: server.base``.

    Args:
        entry: One of ``ENTRIES``.
        port: Port, 0 for a free one.
        script: What ``streamlit run`` runs.
        options: Added to the command.
        environment: Variables to set; by default the server shows the repository's checkpoints.

    Attributes:
        start_seconds: Time from the start of the process to its first answer.

    Raises:
        RuntimeError: If it does not start; the message has the last lines of its output.
    """

    def __init__(
        self,
        entry: str = "streamlit run",
        *,
        port: int = 0,
        script: str = "app.py",
        options: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.port = port or free_port()
        self.base = f"http://127.0.0.1:{self.port}"
        parts = (part.format(port=self.port, script=script) for part in ENTRIES[entry])
        self._arguments = ["-m", *parts, *options]
        self._environment = {"GLASSFORMER_CHECKPOINTS": "", **(environment or {})}

    def __enter__(self) -> AppServer:
        begun = time.perf_counter()
        self._output = tempfile.NamedTemporaryFile(suffix=".log")
        self._process = start_python(
            *self._arguments,
            cwd=REPOSITORY,
            environment=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=self._output,
            stderr=subprocess.STDOUT,
        )
        try:
            self._wait()
        except BaseException:
            self.__exit__()
            raise
        self.start_seconds = time.perf_counter() - begun
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        try:
            self._process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._output.close()

    def last_lines(self, count: int) -> list[str]:
        """Return the end of the server's output."""
        return Path(self._output.name).read_text(errors="replace").splitlines()[-count:]

    @property
    def alive(self) -> bool:
        """Return whether the process is running."""
        return self._process.poll() is None

    @property
    def megabytes(self) -> float:
        """Return the resident memory (RSS), including shared libraries and mapped files; 0 after the end."""
        fields = self._of_process("statm").split()
        return int(fields[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6 if fields else 0.0

    @property
    def peak_megabytes(self) -> float:
        """Return the largest resident memory so far; 0 after the end."""
        return status_megabytes("VmHWM", self._process.pid)

    @property
    def held(self) -> Held:
        """Return the current memory, threads, file descriptors and child processes."""
        return Held.by(self._process.pid)

    @property
    def processor_seconds(self) -> float:
        """Return the processor time used so far by all threads; 0 after the end."""
        after_name = self._of_process("stat").rpartition(")")[2].split()
        return (int(after_name[11]) + int(after_name[12])) / os.sysconf("SC_CLK_TCK") if after_name else 0.0

    def _of_process(self, name: str) -> str:
        """Return Linux's file about the process."""
        if not self.alive:
            return ""
        return Path(f"/proc/{self._process.pid}/{name}").read_text()

    def _wait(self) -> None:
        end = time.monotonic() + START_SECONDS
        while time.monotonic() < end and self.alive:
            try:
                with urllib.request.urlopen(f"{self.base}/_stcore/health", timeout=5):
                    return
            except (urllib.error.URLError, OSError):
                time.sleep(0.02)
        tail = "\n".join(self.last_lines(15))
        raise RuntimeError(f"{' '.join(self._arguments)} did not answer at {self.base}; its last lines are\n{tail}")


@contextmanager
def serving(command: Sequence[object], port: int, log: Path, **where: Any) -> Iterator[Callable[[str], bytes]]:
    """Run a server by its whole command, with its output in ``log``; yield what fetches a path of it.

    ``where`` says in which folder and environment it runs, as for ``subprocess.Popen``.
    """
    with log.open("w") as output:
        process = subprocess.Popen([*map(str, command)], stdout=output, stderr=output, **where)

    def fetch(path: str) -> bytes:
        end = time.monotonic() + START_SECONDS
        while process.poll() is None and time.monotonic() < end:
            with suppress(OSError):
                return urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5).read()
            time.sleep(0.5)
        raise AssertionError(f"{path} is not served:\n{log.read_text()[-2000:]}")

    try:
        yield fetch
    finally:
        process.terminate()
        process.wait(timeout=60)


def add_server_options(parser: argparse.ArgumentParser) -> None:
    """Add ``--port``, ``--entry`` and the options after ``--``: the arguments of ``AppServer``."""
    parser.add_argument("--port", type=int, default=0, help="of the server that is started (default: a free one)")
    parser.add_argument("--entry", choices=sorted(ENTRIES), default="streamlit run", help="how the server is started")
    parser.add_argument("options", nargs="*", help="after --: options of the server")


# Below the ports that Linux gives to outgoing connections (32768 and above); processes that start together begin apart.
_PORTS = itertools.count(20_000 + 97 * os.getpid() % 12_000)


def free_port() -> int:
    """Return a port of this machine that nothing listens on at the moment, another one for each call.

    No connection takes it before the server has started, which may take seconds on a busy machine.
    """
    for port in _PORTS:
        with socket.socket() as listener, suppress(OSError):
            listener.bind(("127.0.0.1", port))
            return port
    raise AssertionError("the count never ends")
