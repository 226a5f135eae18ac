"""The browser bundles are built from the current sources; in node, the drawings draw what they should."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from charts.canvas.module import FOLDER
from tests.conftest import ROOT

BUNDLES = sorted(path for folder in ("charts", "ui", "views", "web") for path in (ROOT / folder).rglob("*.bundle.js"))


def digest_of_sources(*folders: str) -> str:
    """Compute the hash as ``charts/canvas/build.js`` does."""
    others = ("charts/canvas/build.js", "charts/canvas/page.html", "ui/shell/token_rows/token_rows.js")
    modules = [path for folder in folders for path in (ROOT / folder).rglob("*") if path.is_file()]
    digest = hashlib.sha256()
    for path in sorted(
        [*modules, *(ROOT / name for name in others)], key=lambda path: path.relative_to(ROOT).as_posix()
    ):
        digest.update(f"{path.relative_to(ROOT).as_posix()}\n".encode() + path.read_bytes())
    return digest.hexdigest()[:16]


@pytest.mark.parametrize("path", BUNDLES, ids=lambda path: path.name)
def test_a_bundle_is_current(path: Path) -> None:
    first = path.read_text(encoding="utf-8").splitlines()[0]
    folders = ("charts/canvas/source", "web/source") if path.parent.name == "web" else ("charts/canvas/source",)
    expected = f"// npm run build: {digest_of_sources(*folders)}"
    assert first == expected, "run it (docs/code.md), and commit what it makes"


def test_every_bundle_is_built_and_nothing_else_is() -> None:
    code = (FOLDER / "build.js").read_text(encoding="utf-8")
    assert re.findall(r'"(\S+\.bundle\.js)":', code) == [path.relative_to(ROOT).as_posix() for path in BUNDLES]


def test_what_develops_the_scripts_is_pinned() -> None:
    wanted = json.loads((ROOT / "package.json").read_text(encoding="utf-8"))["devDependencies"]
    locked = json.loads((ROOT / "package-lock.json").read_text(encoding="utf-8"))["packages"]
    assert {name: locked[f"node_modules/{name}"]["version"] for name in wanted} == wanted


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed; it also builds the scripts")
def test_marks_pointer_keyboard_and_files_of_every_drawing_and_links_to_the_web_page() -> None:
    command = ["node", "--test", "tests/drawings/", "tests/web/"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout[-4000:]
