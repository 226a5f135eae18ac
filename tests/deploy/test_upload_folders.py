"""Folders of uploads: a server removes its own and abandoned ones, nothing else; see test_ending.py."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ui.server import upload_folders
from ui.server.upload_folders import new_folder, remove_abandoned_folders, remove_own_folders


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setattr(upload_folders.tempfile, "tempdir", str(tmp_path))
    yield tmp_path
    remove_own_folders()


def test_a_folder_of_a_server_that_runs_is_left_alone(temporary: Path) -> None:
    own = new_folder()
    remove_abandoned_folders()
    assert own.is_dir()
    upload_folders._own.clear()  # as another server would see it: only the lock is left
    remove_abandoned_folders()
    assert own.is_dir()


def test_what_is_no_folder_of_ours_is_left_alone(temporary: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    """A folder without a lock file, one whose lock leads elsewhere, and a link instead of a folder."""
    (temporary / "glassformer-uploads-old").mkdir()
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (elsewhere / "file").write_text("kept")
    (temporary / "glassformer-uploads-link.lock").symlink_to(elsewhere / "file")
    (temporary / "glassformer-uploads-other.lock").write_text("")
    (temporary / "glassformer-uploads-other").symlink_to(elsewhere)
    remove_abandoned_folders()
    assert (elsewhere / "file").read_text() == "kept"
    assert (temporary / "glassformer-uploads-old").is_dir()


def test_own_folders_are_removed_with_their_locks(temporary: Path) -> None:
    folder = new_folder()
    (folder / "file").write_text("x")
    remove_own_folders()
    assert not list(temporary.iterdir())
