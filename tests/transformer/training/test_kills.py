"""A run killed in the middle of any file, with one process or two, resumes and ends bitwise equal."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.transformer.training.test_trainer import data  # noqa: F401  (a fixture)

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("processes", "files"),
    [
        (1, ("5", "15")),  # files of the best checkpoint and of the publication
        pytest.param(2, ("8",), marks=pytest.mark.nightly),  # the state at step 4; for one process, see test_trainer.py
    ],
)
def test_a_run_that_is_killed_while_it_writes(
    processes: int,
    files: tuple[str, ...],
    data: Path,  # noqa: F811
    tmp_path: Path,
) -> None:
    pytest.importorskip("accelerate")
    command = [sys.executable, "-m", "tests.transformer.training.killing", data, tmp_path, str(processes), *files]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, encoding="utf-8")
    assert ended.returncode == 0, ended.stderr[-3000:]
    said = json.loads(ended.stdout)
    assert said["wrong"] == {}
    assert said["kills"] == len(files) and said["files"] > 15
