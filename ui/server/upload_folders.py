"""The folder of a server's uploads, which is removed when the server stops, or after it was killed. No Streamlit here.

A lock file lies beside each folder. The operating system releases the lock when the server's process ends, however it
ends: so a folder without a living server is known for certain, and two servers leave each other's alone.
"""

import atexit
import os
import shutil
import signal
import sys
import tempfile
import uuid
from contextlib import suppress
from pathlib import Path

PREFIX, _LOCK = "glassformer-uploads-", ".lock"
_own: dict[Path, int] = {}  # folder → descriptor of its lock


def new_folder() -> Path:
    """Make a folder for uploads among this machine's temporary files. Raises ``OSError`` where that is impossible."""
    lock, folder = None, Path()
    while lock is None:  # once, unless another server that starts now takes the new lock file for one without a server
        folder = Path(tempfile.gettempdir()) / f"{PREFIX}{uuid.uuid4().hex[:12]}"
        lock = _locked(_lock_of(folder), os.O_CREAT | os.O_EXCL)
    folder.mkdir(mode=0o700)
    _own[folder] = lock
    atexit.register(remove_own_folders)
    return folder


def remove_own_folders() -> None:
    """Remove what this server has kept."""
    while _own:
        _remove(*_own.popitem())


def remove_abandoned_folders() -> None:
    """Remove the folders of this user's servers that have ended without doing so."""
    for path in Path(tempfile.gettempdir()).glob(f"{PREFIX}*{_LOCK}"):
        with suppress(OSError):  # of another user, or gone meanwhile
            if (folder := path.with_suffix("")) not in _own and (lock := _locked(path)) is not None:
                _remove(folder, lock)


def remove_folders_at_sigterm() -> None:
    """Remove them also where the process is told to end; Python itself then ends without a word. Main thread only."""

    def end(number: int, _: object) -> None:
        remove_own_folders()
        signal.signal(number, signal.SIG_DFL)
        signal.raise_signal(number)

    signal.signal(signal.SIGTERM, end)


def _lock_of(folder: Path) -> Path:
    return folder.with_name(folder.name + _LOCK)


def _remove(folder: Path, lock: int) -> None:
    """Remove the folder of a lock that this process holds; the lock file stays as long as anything is left of it."""
    shutil.rmtree(folder, ignore_errors=True)
    with suppress(OSError):
        if sys.platform == "win32":  # where an open file cannot be removed
            os.close(lock)
        if not folder.exists():
            _lock_of(folder).unlink()
        if sys.platform != "win32":
            os.close(lock)


def _locked(path: Path, flags: int = 0) -> int | None:
    """The descriptor of the file, locked; ``None`` where another process holds the lock or has removed the file."""
    descriptor = os.open(path, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0) | flags, 0o600)
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.stat(path), os.fstat(descriptor)) and _is_ours(descriptor):
            return descriptor
    except OSError:
        pass
    os.close(descriptor)
    return None


def _is_ours(descriptor: int) -> bool:
    return sys.platform == "win32" or os.fstat(descriptor).st_uid == os.getuid()
