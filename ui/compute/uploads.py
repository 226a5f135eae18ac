"""Uploaded checkpoints: in a folder of their own outside the repository, as long as anybody who uses them is here.

Everybody who has the address of a page can open one; only its sender finds it in the list of checkpoints.
"""

import shutil
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from threading import Lock

import streamlit as st

from transformer.errors import CheckpointError
from transformer.files.received_files import is_received, kept, receive
from ui.server.limits import limits, public
from ui.server.streamlit_private import may_come_back, session_id
from ui.server.upload_folders import new_folder

MOST_OWN = 3  # uploads of one visitor that are kept
_OWN = "uploads: own"
_users: dict[str, set[str]] = {}  # name of an upload → the sessions that have sent or opened it
_one_at_a_time = Lock()  # each is loaded once to be checked: many at once would add up


@lru_cache(maxsize=1)
def uploads_folder() -> Path:
    """Made at the first upload, removed when the server stops."""
    return new_folder()


def keep(files: Mapping[str, bytes]) -> str:
    """Check and keep an upload; the name under which it can be opened. Raises ``CheckpointError``, on a public server
    for every upload, and where there is no room for it.

    Of this visitor's uploads the last ``MOST_OWN`` are kept. What others use is never removed.
    """
    if public():
        raise CheckpointError("This server is public: it takes no files. Run the app on your own machine to open them.")
    try:
        with _one_at_a_time:
            path = receive(files, uploads_folder())
            own = (*(other for other in own_uploads() if other != path.name), path.name)
            _make_space(path, replaced=own[:-MOST_OWN])
            _users.setdefault(path.name, set()).add(session_id())
            st.session_state[_OWN] = own[-MOST_OWN:]
    except OSError as error:
        raise CheckpointError(
            "The server cannot keep the files ({problem}); none of them was kept. They go into its folder for "
            "temporary files: make room there, or name another folder in TMPDIR and start it again.",
            problem=error.strerror or error,
        ) from error
    return path.name


def is_here(name: str) -> bool:
    """Whether this is the name of an upload that is still kept."""
    try:
        return is_received(name) and (uploads_folder() / name).is_dir()
    except OSError:  # there is nowhere to keep any
        return False


def folder_of(name: str) -> Path:
    """Return the folder of an upload, which this session uses from now on: it stays as long as the session does."""
    if is_here(name):
        with _one_at_a_time:
            _users.setdefault(name, set()).add(session_id())
    return uploads_folder() / name


def own_uploads() -> tuple[str, ...]:
    """What this session has sent and is still kept."""
    return tuple(name for name in st.session_state.get(_OWN, ()) if is_here(name))


def _make_space(new: Path, *, replaced: tuple[str, ...]) -> None:
    """Remove what the upload ``new`` takes the place of, then what nobody uses, the oldest first, until all fits.

    Raises ``CheckpointError`` where what is in use leaves no space; ``new`` is removed then, and nothing else.
    """
    sizes = {path: _bytes_in(path) for path in kept(new.parent)}
    excess = sum(sizes.values()) - limits().uploads_mb * 1_000_000
    mine = [path for path in sizes if path.name in replaced and not _others_use(path.name)]
    unused = [
        path for path in reversed(sizes) if path not in (new, *mine) and not _others_use(path.name, also_own=True)
    ]
    if excess > sum(sizes[path] for path in (*mine, *unused)):
        _remove(new)
        raise CheckpointError(
            "The server keeps at most {most} MB of uploaded checkpoints, and visitors are using those it has. Try again"
            " when some of them have left.",
            most=limits().uploads_mb,
        )
    for path in (*mine, *unused):
        if path in mine or excess > 0:
            excess -= sizes[path]
            _remove(path)


def _remove(path: Path) -> None:
    _users.pop(path.name, None)
    shutil.rmtree(path, ignore_errors=True)


def _others_use(name: str, *, also_own: bool = False) -> bool:
    """Whether another session has the upload; ``also_own``: or this one. Those that cannot come back are forgotten."""
    here = {session for session in _users.get(name, ()) if session == session_id() or may_come_back(session)}
    _users[name] = here
    return bool(here if also_own else here - {session_id()})


def _bytes_in(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
