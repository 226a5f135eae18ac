"""The commands work, or say in one sentence why they cannot and leave existing files unchanged.

Tested: another working directory, locale C, warnings as errors, no write permission, a full disk.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.transformer.training.conftest import data  # noqa: F401  (a fixture: corpora)
from tests.transformer.training.test_publication import arguments_of_train

ROOT = Path(__file__).resolve().parents[2]
SURROUNDINGS = {
    "PYTHONPATH": str(ROOT),
    "PYTHONWARNINGS": "error",
    "LC_ALL": "C",
    "PYTHONUTF8": "0",
    "PYTHONCOERCECLOCALE": "0",
}


@pytest.fixture
def said(data: Path, tmp_path: Path, checkpoints_folder: Path) -> dict:  # noqa: F811
    pytest.importorskip("accelerate")
    arguments_of_train(data, tmp_path)  # writes the recipe
    shutil.copytree(data, tmp_path / "data")
    shutil.copytree(checkpoints_folder / "tiny-translator", tmp_path / "checkpoints" / "tiny-translator")
    (tmp_path / "données.tsv").write_text("It is hot.\tIl fait très chaud.\n", encoding="utf-8")
    command = [sys.executable, ROOT / "tests/transformer/surroundings.py", "Où est le café ?", "données.tsv"]
    ended = subprocess.run(command, cwd=tmp_path, env={**os.environ, **SURROUNDINGS}, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr[-3000:]
    return json.loads(ended.stdout)


@pytest.mark.slow
def test_the_commands_in_unkind_surroundings(said: dict) -> None:
    for name, found in said["usual"].items():
        assert found["status"] == 0, (name, found)
        assert "Warning" not in found["errors"], name
    assert "⟨EF⟩" not in said["usual"]["trace"]["out"], "the sentence is read as UTF-8"
    for kind in ("read-only", "full"):
        for name in ("inspect", "trace", "evaluate"):
            assert said[kind][name] == said["usual"][name], "reading needs no right to write and no room"
        for name in ("heads", "card", "train"):
            found = said[kind][name]
            assert found["status"] == 2, (kind, name, found)
            assert "cannot be written" in found["errors"].splitlines()[-1], (kind, name)
            assert "Traceback" not in found["errors"]
    assert said["untouched"]
