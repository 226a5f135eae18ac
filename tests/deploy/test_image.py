"""The Dockerfile without a container engine: its steps run as a script, and its command serves.

Three things are replaced: the packages are those of this environment, the user is the one who runs the tests, and
``/`` is a folder. Everything else is as in the file: ``.dockerignore``, the copied files, the variables, the commands
and the health check.
"""

from __future__ import annotations

import fnmatch
import json
import re
import shutil
import string
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.deploy.test_package import NEEDED
from tests.harness.app_server import free_port, serving

pytestmark = pytest.mark.slow
ROOT = Path(__file__).resolve().parents[2]


class Image:
    """Run the steps of a Dockerfile in ``root``."""

    def __init__(self, text: str, root: Path, *, given: dict[str, str]) -> None:
        self.folder, self.user, self.users = root, "root", {"root": 0}
        self.environment = {"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin", "HOME": str(root)}
        self.environment["OMP_NUM_THREADS"] = "1"
        arguments: dict[str, str] = {}
        for line in re.sub(r"\\\n\s*", "", text).splitlines():
            name, _, rest = line.strip().partition(" ")
            if name in ("ENV", "RUN", "EXPOSE"):
                rest = string.Template(rest).substitute(arguments)
            key, _, value = rest.partition("=")
            match name:
                case "FROM":
                    assert re.fullmatch(r"python:3\.\d+-slim", rest)
                case "ARG":
                    arguments[key] = given.get(key, value)
                case "ENV":
                    self.environment[key] = value
                case "WORKDIR":
                    self.folder = root / rest.lstrip("/")
                    self.folder.mkdir(parents=True)
                case "COPY":
                    self._copy(*rest.split())
                case "RUN":
                    self._run(rest)
                case "USER":
                    assert rest in self.users, f"nobody has made the user {rest}"
                    self.user = rest
                case "EXPOSE":
                    self.port = int(rest)
                case "HEALTHCHECK":
                    self.health = json.loads(rest[rest.index("CMD ") + 4 :])
                case "CMD":
                    self.command = json.loads(rest)
                case _:
                    assert not name or name.startswith("#"), f"{name} is not known"

    def _copy(self, source: str, target: str) -> None:
        found = [path for path in ROOT.glob(source) if let_through(path)]
        assert found, f"COPY {source} copies nothing"
        for path in found:
            if path.is_dir():
                shutil.copytree(path, self.folder / target, ignore=ignored)
            else:
                into = self.folder / target / path.name
                into.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(path, into)

    def _run(self, command: str) -> None:
        assert self.user == "root"
        if command.startswith("useradd"):
            self.users[command.split()[-1]] = int(re.search(r"--uid (\d+)", command).group(1))
        elif command.startswith("pip install"):
            fits_this_environment(self.folder / command.split()[-1])
        else:
            subprocess.run(command, shell=True, cwd=self.folder, env=self.environment, check=True)

    def healthy(self) -> bool:
        check = subprocess.run(self.health, cwd=self.folder, env=self.environment, capture_output=True)
        return check.returncode == 0

    def files(self) -> dict[str, float]:
        """Return every file with its modification time."""
        return {str(path): path.stat().st_mtime for path in self.folder.rglob("*") if path.is_file()}


def let_through(path: Path) -> bool:
    """Return whether ``.dockerignore`` lets a file through, by its last line that matches the file."""
    name, sent = path.relative_to(ROOT).as_posix(), True
    parents = [name, *(parent.as_posix() for parent in Path(name).parents if parent != Path("."))]
    for line in (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines():
        pattern = line.lstrip("!").removeprefix("**/")
        candidates = Path(name).parts if line.startswith("**/") else parents
        if line and not line.startswith("#") and any(fnmatch.fnmatchcase(part, pattern) for part in candidates):
            sent = line.startswith("!")
    return sent


def ignored(folder: str, names: list[str]) -> set[str]:
    return {name for name in names if not let_through(Path(folder) / name)}


def fits_this_environment(file: Path) -> None:
    """The packages that ``pip install`` would install are those of the tests."""
    wanted = [line for line in file.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")]
    assert wanted
    for requirement in map(Requirement, wanted):
        if requirement.marker and not requirement.marker.evaluate():
            continue
        found = version(requirement.name).split("+")[0]
        assert requirement.specifier.contains(found), f"{requirement} is installed as {found}"


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Image]:
    """As a Space builds it, but on a free port."""
    text = (ROOT / "deploy" / "Dockerfile").read_text(encoding="utf-8")
    given = {"UID": "1000", "PORT": str(free_port()), "PUBLIC": "1"}
    yield Image(text, tmp_path_factory.mktemp("image"), given=given)


def test_only_what_runs_is_in_it_and_the_server_is_not_root(image: Image) -> None:
    assert image.users[image.user] == 1000
    names = {path.name for path in image.folder.iterdir()}
    assert names >= NEEDED - {"web"}, "a command's package, which no server uses"
    assert not names & {"tests", "benchmarks", "docs", "node_modules", ".git", ".venv"}
    assert not (image.folder / "charts" / "canvas" / "source").exists()
    assert list((image.folder / "ui").rglob("*.pyc"))  # created by the step that compiles the code


def test_its_command_serves_is_healthy_and_writes_nothing(image: Image, tmp_path: Path) -> None:
    assert not image.healthy()
    before, log = image.files(), tmp_path / "server.log"
    environment = {**image.environment, "TMPDIR": str(tmp_path)}
    with serving(image.command, image.port, log, cwd=image.folder, env=environment) as fetch:
        assert fetch("/_stcore/health") == b"ok"
        assert image.healthy()
    said = log.read_text()
    assert "warm after" in said and "warming up, the page" not in said  # the first pages have run without a problem
    assert f":{image.port}" in said
    assert image.files() == before  # the image must run on a read-only file system
