"""The drawings, tested in node: their marks, what pointer and keyboard find, their files."""

import shutil
import subprocess

import pytest

from tests.conftest import ROOT


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed; it also builds the scripts")
def test_marks_pointer_keyboard_and_files_of_every_drawing() -> None:
    done = subprocess.run(["node", "--test", "tests/drawings/"], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout[-4000:]
