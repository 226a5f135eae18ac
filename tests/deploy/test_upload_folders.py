"""Uploads are removed when their server ends, even if it is killed; those of a running server stay."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

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


def start(running: ExitStack, entry: str, temporary: Path, checkpoints: Path) -> tuple[AppServer, set[Path]]:
    """Return a server with a stored upload, and its upload folder."""
    before = folders(temporary)
    environment = {"TMPDIR": str(temporary), "OMP_NUM_THREADS": "1", "GLASSFORMER_CHECKPOINTS": str(checkpoints)}
    server = running.enter_context(AppServer(entry, environment=environment))

    async def visit() -> None:
        async with BrowserSession(server.base) as session:
            await session.open("checkpoint", {"checkpoint": UPLOAD})

    in_own_thread(asyncio.run, visit())
    own = folders(temporary) - before
    for folder in own:
        (folder / UPLOAD).mkdir()
        (folder / UPLOAD / "model.safetensors").write_bytes(b"x" * 1000)
    return server, own


def end(server: AppServer, number: signal.Signals) -> None:
    server._process.send_signal(number)
    server._process.wait(timeout=60)


@pytest.mark.slow
@pytest.mark.parametrize("entry", by_day(sorted(ENTRIES), ["streamlit run"]))  # for both, see also test_ending.py
def test_what_a_server_leaves(entry: str, tmp_path: Path, checkpoints_folder: Path) -> None:
    with ExitStack() as running:
        killed, one = start(running, entry, tmp_path, checkpoints_folder)
        stays, two = start(running, entry, tmp_path, checkpoints_folder)
        assert len(one) == len(two) == 1 and folders(tmp_path) == one | two
        end(killed, signal.SIGKILL)
        assert folders(tmp_path) == one | two, "nobody could remove it"
        third, three = start(running, entry, tmp_path, checkpoints_folder)
        assert folders(tmp_path) == two | three, (
            "of the server that was killed nothing is left, of the other everything"
        )
        for server in (stays, third):
            end(server, signal.SIGTERM)
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
