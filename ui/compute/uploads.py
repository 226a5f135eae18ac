"""Uploaded checkpoints: kept until the server stops, in a folder of their own outside the repository.

Everybody who has the address of a page can open one; only its sender finds it in the list of checkpoints.
"""

import atexit
import shutil
import tempfile
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from threading import Lock

import streamlit as st

from transformer.errors import CheckpointError
from transformer.files.received_files import is_received, receive
from ui.server.limits import public

_OWN = "uploads: own"
_one_at_a_time = Lock()  # each is loaded once to be checked: many at once would add up


@lru_cache(maxsize=1)
def uploads_folder() -> Path:
    """Made at the first upload, removed when the server stops."""
    folder = Path(tempfile.mkdtemp(prefix="glassformer-uploads-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def keep(files: Mapping[str, bytes]) -> str:
    """Check and keep an upload; the name under which it can be opened. Raises ``CheckpointError``, on a public server
    for every upload, and where there is no room for it."""
    if public():
        raise CheckpointError("This server is public: it takes no files. Run the app on your own machine to open them.")
    try:
        with _one_at_a_time:
            name = receive(files, uploads_folder()).name
    except OSError as error:
        raise CheckpointError(
            "The server cannot keep the files ({problem}); none of them was kept. They go into its folder for "
            "temporary files: make room there, or name another folder in TMPDIR and start it again.",
            problem=error.strerror or error,
        ) from error
    st.session_state[_OWN] = (*(own for own in st.session_state.get(_OWN, ()) if own != name), name)
    return name


def is_here(name: str) -> bool:
    """Whether this is the name of an upload that is still kept."""
    try:
        return is_received(name) and (uploads_folder() / name).is_dir()
    except OSError:  # there is nowhere to keep any
        return False


def own_uploads() -> tuple[str, ...]:
    """What this session has sent and is still kept."""
    return tuple(name for name in st.session_state.get(_OWN, ()) if is_here(name))
