"""What is shipped holds all that the app needs: the wheel of ``pip install .``, and the image."""

from __future__ import annotations

import contextlib
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
NEEDED = {*FORBIDDEN, "app.py", ".streamlit", "lessons", "configs", "checkpoints", "deploy"}


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


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built and unpacked as an installation would."""
    from hatchling.builders.wheel import WheelBuilder

    folder = tmp_path_factory.mktemp("wheel")
    with contextlib.chdir(ROOT):
        wheel = next(WheelBuilder(str(ROOT)).build(directory=str(folder), versions=["standard"]))
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / "site")
    return folder / "site"


@pytest.mark.slow
def test_a_view_draws_itself_in_a_notebook_where_the_program_is_installed(site: Path, tmp_path: Path) -> None:
    code = f"""
import sys
import transformer
checkpoint = transformer.load({str(site / "glassformer" / "app" / "checkpoints" / "en-fr")!r})
view = transformer.trace(checkpoint, "The cat.", "Le chat.").attention("decoder", layer=0, kind="cross")
assert "<iframe" in view._repr_html_()
assert not any("glassformer" in folder for folder in sys.path)
from glassformer.notebook import attention_map
assert "<iframe" in attention_map(view, head=0)._repr_html_()
"""
    environment = {**os.environ, "PYTHONPATH": str(site)}
    result = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr[-2000:]


@pytest.mark.slow
def test_the_wheel_starts_the_app_from_any_folder(site: Path, tmp_path: Path) -> None:
    """Where there is nothing of this repository."""
    assert {path.name for path in site.iterdir() if path.suffix != ".dist-info"} == {"transformer", "glassformer"}

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = {**os.environ, "PYTHONPATH": str(site)}
    environment.pop("GLASSFORMER_CHECKPOINTS", None)
    log = tmp_path / "server.log"
    with log.open("w") as output:
        command = [sys.executable, "-m", "glassformer", "--port", str(port)]
        server = subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=output, stderr=output)
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
