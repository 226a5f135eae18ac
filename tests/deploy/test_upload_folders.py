"""Uploads are removed when their server ends, even if it is killed; those of a running server stay."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.harness.app_server import ENTRIES, AppServer
from tests.harness.browser_session import BrowserSession
from tests.nights import by_day
from tests.own_thread import in_own_thread
from ui.server import upload_folders
from ui.server.upload_folders import new_folder, remove_abandoned_folders, remove_own_folders

UPLOAD = f"received-{'0123456789abcdef' * 4}"


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setattr(upload_folders.tempfile, "tempdir", str(tmp_path))
    yield tmp_path
    remove_own_folders()


def folders(temporary: Path) -> set[Path]:
    return {path for path in temporary.glob("glassformer-uploads-*") if path.is_dir()}


@contextmanager
def process_with_folder(temporary: Path, before: set[Path]) -> Iterator[tuple[subprocess.Popen, set[Path]]]:
    """Run what a server runs about its folder, without the server; yield it and its folder."""
    code = "from ui.server import upload_folders as f; f.remove_folders_at_sigterm(); print(f.new_folder()); input()"
    streams = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "cwd": ROOT}
    environment = {**os.environ, "TMPDIR": str(temporary)}
    with subprocess.Popen([sys.executable, "-c", code], env=environment, **streams) as process:
        try:
            process.stdout.readline()
            (own,) = folders(temporary) - before
            (own / UPLOAD).mkdir()
            yield process, {own}
        finally:
            process.kill()


@pytest.mark.slow
@pytest.mark.parametrize("entry", by_day(sorted(ENTRIES), ["streamlit run"]))  # for both, see also test_ending.py
def test_what_a_server_leaves(entry: str, tmp_path: Path, checkpoints_folder: Path) -> None:
    async def visit(server: AppServer) -> None:
        async with BrowserSession(server.base) as session:
            await session.open("checkpoint", {"checkpoint": UPLOAD})

    with process_with_folder(tmp_path, set()) as (killed, one), process_with_folder(tmp_path, one) as (stays, two):
        killed.kill()
        killed.wait()
        assert folders(tmp_path) == one | two, "nobody could remove it"
        environment = {
            "TMPDIR": str(tmp_path),
            "OMP_NUM_THREADS": "1",
            "GLASSFORMER_CHECKPOINTS": str(checkpoints_folder),
        }
        with AppServer(entry, environment=environment) as server:
            in_own_thread(asyncio.run, visit(server))
            three = folders(tmp_path) - one - two
            assert len(three) == 1 and folders(tmp_path) == two | three, "only what was abandoned is removed"
            (*three,)[0].joinpath("file").write_text("x")
            server._process.send_signal(signal.SIGTERM)
            server._process.wait(timeout=60)
        assert folders(tmp_path) == two
        stays.terminate()
        stays.wait()
    assert not list(tmp_path.glob("glassformer-uploads-*"))


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
