"""A Firefox without a driver: WebDriver BiDi over its own WebSocket.

See https://w3c.github.io/webdriver-bidi/.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from websockets.sync.client import ClientConnection, connect

EXECUTABLES = ("firefox-esr", "firefox")
PATIENCE = 180.0  # seconds


def executable() -> str | None:
    """Return the path of a Firefox, ``None`` if there is none."""
    return next(filter(None, map(shutil.which, EXECUTABLES)), None)


class Firefox:
    """One tab."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket, self.number = socket, 0
        self.send("session.new", capabilities={})
        self.context = self.send("browsingContext.getTree")["contexts"][0]["context"]

    def send(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send a command and return its result.

        Raises:
            RuntimeError: If Firefox refuses it.
        """
        self.number += 1
        self.socket.send(json.dumps({"id": self.number, "method": method, "params": parameters}))
        while True:
            said = json.loads(self.socket.recv(timeout=PATIENCE))
            if said.get("id") == self.number:
                break
        if said["type"] == "error":
            raise RuntimeError(f"{method}: {said['message']}")
        return said["result"]

    def open(self, address: str) -> None:
        """Open a page and wait until it is loaded."""
        self.send("browsingContext.navigate", context=self.context, url=address, wait="complete")

    def evaluate(self, script: str) -> Any:
        """Return the value of an expression, which JSON can express.

        Raises:
            RuntimeError: If the script throws.
        """
        wrapped = f"Promise.resolve({script}).then((value) => JSON.stringify(value ?? null))"
        target = {"context": self.context}
        said = self.send("script.evaluate", expression=wrapped, target=target, awaitPromise=True)
        if said["type"] == "exception":
            raise RuntimeError(said["exceptionDetails"]["text"])
        return json.loads(said["result"]["value"])

    def type(self, text: str) -> None:
        """Press and release the key of every character."""
        keys = [{"type": kind, "value": letter} for letter in text for kind in ("keyDown", "keyUp")]
        actions = [{"type": "key", "id": "keyboard", "actions": keys}]
        self.send("input.performActions", context=self.context, actions=actions)

    def wait_for(self, condition: str) -> None:
        """Wait until an expression is true.

        Raises:
            TimeoutError: If that takes too long.
        """
        end = time.monotonic() + PATIENCE
        while not self.evaluate(f"Boolean({condition})"):
            if time.monotonic() > end:
                raise TimeoutError(f"{condition} is not true after {PATIENCE:.0f} s")
            time.sleep(0.2)


@contextmanager
def firefox() -> Iterator[Firefox]:
    """Yield a headless Firefox with an empty profile."""
    program = executable()
    assert program is not None
    with TemporaryDirectory() as profile:
        command = [program, "--headless", "--remote-debugging-port", "0", "--profile", profile, "--no-remote"]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            with connect(f"{_address(Path(profile), process)}/session", max_size=None) as socket:
                yield Firefox(socket)
        finally:
            process.terminate()
            process.wait(timeout=30)


def _address(profile: Path, process: subprocess.Popen[bytes]) -> str:
    """Return the address of the WebSocket, which Firefox writes into its profile."""
    file, end = profile / "WebDriverBiDiServer.json", time.monotonic() + PATIENCE
    while not file.is_file():
        if process.poll() is not None or time.monotonic() > end:
            raise RuntimeError("Firefox did not start")
        time.sleep(0.1)
    found = json.loads(file.read_text())
    return f"ws://{found['ws_host']}:{found['ws_port']}"
