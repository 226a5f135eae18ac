"""Uploaded checkpoints, stored outside the repository as long as they are in use.

Everybody with the address of a page can open one; only its sender finds it in the list of checkpoints.
"""

import shutil
import time
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from threading import BoundedSemaphore, Lock

import streamlit as st

from transformer.errors import CheckpointError
from transformer.files.received_files import is_received, receive, received_checkpoints
from ui.server.settings import public, settings
from ui.server.streamlit_private import is_connected, may_come_back, session_id
from ui.server.upload_folders import new_folder

MOST_OWN = 3  # stored uploads per visitor
AWAY = 120  # seconds for which uploads of a lost connection are in use; later they may go if there is no space
_OWN = "uploads: own"
_users: dict[str, set[str]] = {}  # name of an upload → the sessions that have sent or opened it
_away: dict[str, float] = {}  # when a session was first found without a connection
_checks = BoundedSemaphore(3)  # each upload is loaded once for a check; many at once would add up in memory
_lock = Lock()  # protects the folder of uploads and who uses them; held for moments, never while a file is checked


@lru_cache(maxsize=1)
def uploads_folder() -> Path:
    """Return the folder of uploads, created at the first upload and removed when the server stops."""
    return new_folder()


def keep(files: Mapping[str, bytes]) -> str:
    """Check and store an upload, and return the name under which it can be opened.

    The last ``MOST_OWN`` uploads of this visitor are kept. Uploads that others use are never removed.

    Raises:
        CheckpointError: If the upload is invalid, there is no space for it, or the server is public.
    """
    if public():
        raise CheckpointError(
            "This server is public and accepts no files. Run the app on your own machine to open them."
        )
    try:
        with _checks:
            path = receive(files, uploads_folder(), lock=_lock)
        with _lock:
            own = (*(other for other in own_uploads() if other != path.name), path.name)
            _make_space(path, replaced=own[:-MOST_OWN])
            _users.setdefault(path.name, set()).add(session_id())
            st.session_state[_OWN] = own[-MOST_OWN:]
    except OSError as error:
        raise CheckpointError(
            f"The server cannot keep the files ({error.strerror or error}); none of them was kept. They go "
            "into its folder for temporary files: make room there, or name another folder in TMPDIR and "
            "start it again."
        ) from error
    return path.name


def is_here(name: str) -> bool:
    """Return whether this is the name of a stored upload."""
    try:
        return is_received(name) and (uploads_folder() / name).is_dir()
    except OSError:  # there is no folder for uploads
        return False


def folder_of(name: str) -> Path:
    """Return the folder of a stored upload, and keep it as long as this session uses it."""
    with _lock:
        _users.setdefault(name, set()).add(session_id())
    return uploads_folder() / name


def own_uploads() -> tuple[str, ...]:
    """Return the stored uploads of this session."""
    return tuple(name for name in st.session_state.get(_OWN, ()) if is_here(name))


def _make_space(new: Path, *, replaced: tuple[str, ...]) -> None:
    """Remove what the upload ``new`` replaces, then the oldest unused ones, until everything fits.

    Raises:
        CheckpointError: If uploads in use leave no space; in that case only ``new`` is removed.
    """
    sizes = {path: _bytes_in(path) for path in received_checkpoints(new.parent)}
    excess = sum(sizes.values()) - settings().uploads_mb * 1_000_000
    mine = [path for path in sizes if path.name in replaced and not _others_use(path.name)]
    unused = [
        path for path in reversed(sizes) if path not in (new, *mine) and not _others_use(path.name, also_own=True)
    ]
    # Another upload may have taken its place just before.
    if excess > sum(sizes[path] for path in (*mine, *unused)) or not new.is_dir():
        _remove(new)
        raise CheckpointError(
            f"The server keeps at most {settings().uploads_mb} MB of uploaded checkpoints, and visitors are "
            "using those it has. Try again when some of them have left."
        )
    for path in (*mine, *unused):
        if path in mine or excess > 0:
            excess -= sizes[path]
            _remove(path)


def _remove(path: Path) -> None:
    _users.pop(path.name, None)
    shutil.rmtree(path, ignore_errors=True)


def _others_use(name: str, *, also_own: bool = False) -> bool:
    """Return whether another session (or, with ``also_own``, this one) uses the upload.

    Sessions that cannot come back are dropped from the list.
    """
    known = {session for session in _users.get(name, ()) if session == session_id() or may_come_back(session)}
    _users[name] = known
    here = {session for session in known if session == session_id() or _is_using(session)}
    return bool(here if also_own else here - {session_id()})


def _is_using(session: str) -> bool:
    """Return whether a session is connected, or has not been away for long."""
    if is_connected(session):
        _away.pop(session, None)
        return True
    for other in [other for other in _away if not may_come_back(other)]:
        del _away[other]
    return time.monotonic() - _away.setdefault(session, time.monotonic()) < AWAY


def _bytes_in(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
