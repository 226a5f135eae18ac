"""What is shipped holds all that the app needs: the wheel of ``pip install .``, and the image."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import tomllib
import urllib.request
import zipfile
from pathlib import Path

import pytest

from tests.test_borders import FORBIDDEN

ROOT = Path(__file__).resolve().parents[2]
NEEDED = {*FORBIDDEN, "app.py", ".streamlit", "lessons", "checkpoints", "deploy"}


def test_every_package_is_known_here() -> None:
    packages = {path.parent.name for path in ROOT.glob("*/__init__.py")} - {"benchmarks", "glassformer"}
    assert packages <= NEEDED, "a new package; say here whether the app needs it"


def test_the_image_holds_every_room_of_the_app() -> None:
    """A build needs Docker; this test does not."""
    lines = (ROOT / "deploy" / "Dockerfile").read_text(encoding="utf-8").splitlines()
    copied = {line.split()[1].split("/")[0] for line in lines if line.startswith("COPY")}
    let_through = {
        line[1:].split("/")[0]
        for line in (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
        if line.startswith("!")
    }
    assert copied >= NEEDED
    assert let_through >= NEEDED


def test_the_wheel_is_told_of_every_room_of_the_app() -> None:
    wheel = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["hatch"]["build"]["targets"][
        "wheel"
    ]
    assert set(wheel["force-include"]) | set(wheel["packages"]) >= NEEDED
    assert all(place == f"glassformer/app/{name}" for name, place in wheel["force-include"].items())


@pytest.mark.slow
def test_the_wheel_starts_the_app_from_any_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Built, unpacked as an installation would, and started where there is nothing of this repository."""
    from hatchling.builders.wheel import WheelBuilder

    monkeypatch.chdir(ROOT)
    wheel = next(WheelBuilder(str(ROOT)).build(directory=str(tmp_path), versions=["standard"]))
    site, elsewhere = tmp_path / "site", tmp_path / "elsewhere"
    elsewhere.mkdir()
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
        names = {name.split("/")[0] for name in archive.namelist()}
    assert {name for name in names if not name.endswith(".dist-info")} == {"transformer", "glassformer"}

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = {**os.environ, "PYTHONPATH": str(site)}
    environment.pop("GLASSFORMER_CHECKPOINTS", None)
    log = tmp_path / "server.log"
    with log.open("w") as output:
        command = [sys.executable, "-m", "glassformer", "--port", str(port)]
        server = subprocess.Popen(command, cwd=elsewhere, env=environment, stdout=output, stderr=output)
    try:
        assert answer(f"http://127.0.0.1:{port}/_stcore/health", server) == b"ok", log.read_text()
    finally:
        server.terminate()
        server.wait(timeout=60)
    assert "warm after" in log.read_text() and "said:" not in log.read_text()


def answer(address: str, server: subprocess.Popen, *, seconds: float = 240) -> bytes:
    """What the server answers, once it does; nothing where it has ended."""
    deadline = time.monotonic() + seconds
    while server.poll() is None and time.monotonic() < deadline:
        try:
            return urllib.request.urlopen(address, timeout=5).read()
        except OSError:
            time.sleep(0.5)
    return b""
