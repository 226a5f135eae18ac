"""The check of commit subjects, as the hook and CI run it."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[1]
CHECK = ROOT / ".ci" / "subjects.py"


@pytest.fixture(scope="module")
def check() -> ModuleType:
    spec = importlib.util.spec_from_file_location("subjects", CHECK)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("subject", "problem"),
    [
        ("Fix row names when switching to cross-attention in guess mode", None),
        ("Embed fonts in exported PDFs", None),
        ("Pass the token on", None),
        ("Focus the search box", None),
        ("Re-run the training of en-fr", None),
        ("Merge branch 'main' into heads", None),
        ('Revert "Fix row names"', None),
        ("fixup! Fixed row names.", None),
        ("Fixed row names", "'Fixed'"),
        ("Fixing row names", "'Fixing'"),
        ("Fixes row names", "'Fixes'"),
        ("The page opens on its figure", "'The'"),
        ("What the browser says is told", "'What'"),
        ("heads: fix row names", "'heads:'"),
        ("fix row names", "'fix'"),
        ("Fix row names.", "full stop"),
        ("Fix " + 69 * "x", "73 characters"),
    ],
)
def test_a_subject_passes_or_is_refused_with_its_reason(check: ModuleType, subject: str, problem: str | None) -> None:
    found = check.problems(subject)
    assert any(problem in one for one in found) if problem else found == []


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_the_hook_stops_a_commit_with_a_bad_subject(tmp_path: Path) -> None:
    shutil.copytree(ROOT / ".githooks", tmp_path / ".githooks")
    (tmp_path / ".ci").mkdir()
    shutil.copy(CHECK, tmp_path / ".ci")

    def git(*arguments: str) -> subprocess.CompletedProcess[str]:
        settings = ("user.name=A", "user.email=a@example.org", "core.hooksPath=.githooks", "commit.gpgsign=false")
        options = [word for setting in settings for word in ("-c", setting)]
        return subprocess.run(["git", *options, *arguments], cwd=tmp_path, capture_output=True, text=True)

    assert git("init", "--quiet").returncode == 0
    refused = git("commit", "--allow-empty", "--message", "Fixed it")
    assert refused.returncode != 0 and "'Fixed'" in refused.stderr
    assert git("commit", "--allow-empty", "--message", "Fix it").returncode == 0


def test_without_the_base_commit_nothing_is_checked(tmp_path: Path) -> None:
    """As in a shallow clone, and in a copy without ``.git``."""
    (tmp_path / ".ci").mkdir()
    shutil.copy(CHECK, tmp_path / ".ci")
    answer = subprocess.run([sys.executable, tmp_path / ".ci" / CHECK.name], capture_output=True, text=True)
    assert answer.returncode == 0 and "not checked" in answer.stdout


def test_all_subjects_since_the_base_pass() -> None:
    answer = subprocess.run([sys.executable, CHECK], capture_output=True, text=True)
    assert answer.returncode == 0, answer.stderr
