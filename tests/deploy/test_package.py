"""The wheel of ``pip install .`` and the image contain everything that the app needs."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import sysconfig
import tomllib
from pathlib import Path

import pytest

from tests.harness.app_server import free_port, serving
from tests.test_borders import FORBIDDEN
from ui.compute.loading import IN_THE_REPOSITORY
from ui.shell.focus import Focus, fit_checkpoint
from ui.shell.guidance.lessons import lessons

ROOT = Path(__file__).resolve().parents[2]
NEEDED = {*FORBIDDEN, "app.py", ".streamlit", "lessons", "configs", "checkpoints", "deploy"}


def included() -> dict[str, str]:
    """Return the files in the wheel besides the packages, with their locations."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    wheel = project["tool"]["hatch"]["build"]["targets"]["wheel"]
    return {**dict.fromkeys(wheel["packages"], ""), **wheel["force-include"]}


def test_the_wheel_is_told_of_every_room_of_the_app() -> None:
    packages = {path.parent.name for path in ROOT.glob("*/__init__.py")} - {"benchmarks", "glassformer"}
    assert packages <= NEEDED, "a new package; say here whether the app needs it"
    assert {name.split("/")[0] for name in included()} >= NEEDED
    assert all(place in ("", f"glassformer/app/{name}") for name, place in included().items())


def test_every_checkpoint_is_in_the_wheel_or_named_where_it_is_asked_for() -> None:
    packed = {Path(name).parts[1] for name in included() if name.startswith("checkpoints/")}
    assert packed == {"en-fr", "en-fr-2017", "en-fr-sharp", "gpt-en", "bert-en", "t5-small-tasks", "vit-digits"}
    told_on = {step.focus["checkpoint"] for lesson in lessons()[0] for step in lesson.steps}
    assert packed | set(IN_THE_REPOSITORY) >= told_on, "steps about the latter are left out where they are missing"
    assert packed | set(IN_THE_REPOSITORY) == {path.name for path in (ROOT / "checkpoints").iterdir() if path.is_dir()}
    assert not packed & set(IN_THE_REPOSITORY)
    focus, (note,) = fit_checkpoint(Focus(checkpoint="sentiment"), ["en-fr", "gpt-en"])
    assert focus.checkpoint == "en-fr"
    assert note == "'sentiment' is part of the repository, not of the installed program; showing 'en-fr'."


def test_a_checkpoint_that_is_included_file_by_file_lacks_only_snapshots() -> None:
    packed = {name for name in included() if len(Path(name).parts) > 2 and name.startswith("checkpoints/")}
    folders = (ROOT / "checkpoints" / name for name in ("en-fr", "en-fr-2017", "en-fr-sharp"))
    whole = {f"checkpoints/{folder.name}/{path.name}" for folder in folders for path in folder.glob("*.*")}
    assert packed == whole | {"checkpoints/en-fr/snapshots/step-000000.safetensors"}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from hatchling.builders.wheel import WheelBuilder

    with contextlib.chdir(ROOT):
        return Path(
            next(WheelBuilder(str(ROOT)).build(directory=str(tmp_path_factory.mktemp("wheel")), versions=["standard"]))
        )


@pytest.fixture(scope="module")
def python(wheel: Path) -> Path:
    """Return the Python of a fresh environment with the wheel installed and the dependencies of the tests."""
    folder = wheel.parent / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    python = folder / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-index", "--no-deps"]
    subprocess.run([*pip, "--no-compile", wheel], check=True)
    (site,) = folder.glob("lib/python*/site-packages")
    (site / "needed.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    return python


@pytest.mark.slow
def test_the_wheel_is_small(wheel: Path) -> None:
    assert wheel.stat().st_size < 100e6


@pytest.mark.slow
def test_a_view_draws_itself_in_a_notebook_where_the_program_is_installed(python: Path, tmp_path: Path) -> None:
    code = """
import sys
import glassformer, transformer
checkpoint = transformer.load(glassformer.APP / "checkpoints" / "en-fr")
view = transformer.trace(checkpoint, "The cat.", "Le chat.").attention("decoder", layer=0, kind="cross")
assert "<iframe" in view._repr_html_()
assert not any("glassformer" in folder for folder in sys.path)
from glassformer.notebook import attention_map
assert "<iframe" in attention_map(view, head=0)._repr_html_()
"""
    result = subprocess.run([python, "-c", code], cwd=tmp_path, env=plain(), capture_output=True, text=True)
    assert result.returncode == 0, result.stderr[-2000:]


def plain() -> dict[str, str]:
    """Return the environment of a user who does not have this repository."""
    ours = ("PYTHONPATH", "GLASSFORMER_CHECKPOINTS")
    return {name: value for name, value in os.environ.items() if name not in ours}


@pytest.mark.slow
def test_the_installed_program_opens_the_app_from_any_folder(python: Path, tmp_path: Path) -> None:
    port, log = free_port(), tmp_path / "server.log"
    command = [python.with_name("glassformer"), "--port", port]
    with serving(command, port, log, cwd=tmp_path, env=plain()) as fetch:
        assert fetch("/_stcore/health") == b"ok"
        assert b"<title>" in fetch("/attention")
    assert "warm after" in log.read_text() and "said:" not in log.read_text()
