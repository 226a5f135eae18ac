"""Folder of a server's uploads, removed when the server stops. No Streamlit here.

There is a lock file next to each folder. The operating system releases the lock when the server's process ends, however
it ends: so a folder without a running server is recognised reliably, and two servers do not interfere.
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
    """Create a folder for uploads among this machine's temporary files.

    Raises:
        OSError: If that is impossible.
    """
    lock, folder = None, Path()
    while lock is None:  # succeeds at once unless another starting server removes the new lock file as an abandoned one
        folder = Path(tempfile.gettempdir()) / f"{PREFIX}{uuid.uuid4().hex[:12]}"
        lock = _open_locked(_lock_of(folder), os.O_CREAT | os.O_EXCL)
    folder.mkdir(mode=0o700)
    _own[folder] = lock
    atexit.register(remove_own_folders)
    return folder


def remove_own_folders() -> None:
    """Remove everything that this server has stored."""
    while _own:
        _remove(*_own.popitem())


def remove_abandoned_folders() -> None:
    """Remove the folders of this user's servers that ended without doing so."""
    for path in Path(tempfile.gettempdir()).glob(f"{PREFIX}*{_LOCK}"):
        with suppress(OSError):  # another user's, or already removed
            if (folder := path.with_suffix("")) not in _own and (lock := _open_locked(path)) is not None:
                _remove(folder, lock)


def remove_folders_at_sigterm() -> None:
    """Also remove the folders when the process receives SIGTERM; main thread only.

    Python itself would exit without cleaning up.
    """

    def end(number: int, _: object) -> None:
        remove_own_folders()
        signal.signal(number, signal.SIG_DFL)
        signal.raise_signal(number)

    signal.signal(signal.SIGTERM, end)


def _lock_of(folder: Path) -> Path:
    return folder.with_name(folder.name + _LOCK)


def _remove(folder: Path, lock: int) -> None:
    """Remove the folder of a lock that this process holds; keep the lock file if anything is left."""
    shutil.rmtree(folder, ignore_errors=True)
    with suppress(OSError):
        if sys.platform == "win32":  # where an open file cannot be removed
            os.close(lock)
        if not folder.exists():
            _lock_of(folder).unlink()
        if sys.platform != "win32":
            os.close(lock)


def _open_locked(path: Path, flags: int = 0) -> int | None:
    """Open and lock a file, and return its descriptor.

    The result is ``None`` if another process holds the lock or has removed the file.
    """
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
