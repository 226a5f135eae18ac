"""Image and sound files that the reader has given: they stay as long as the session does.

An address holds only their hash. The files are kept by the session, next to its sentence, and lent to the process,
which may drop them; every run brings them back.
"""

from collections.abc import Callable, Mapping

import streamlit as st

from transformer.errors import InputError
from transformer.pictures import image_files
from transformer.sounds import sound_files
from ui.words.catalogues import translate

MOST_OWN = 4  # files of a kind per session; the oldest goes first
_OWN, _PROBLEM = "files: own", "files: problem"
_KINDS = (image_files, sound_files)


def take_file(data: bytes, text_of: Callable[[bytes], str] = image_files.image_text) -> str:
    """Keep a file and return its text; "" if it cannot be read, with the reason in ``problem``.

    Args:
        data: The content of the file.
        text_of: What keeps it in this process and returns its text.
    """
    st.session_state[_PROBLEM] = ""
    try:
        text = text_of(data)
    except InputError as error:
        st.session_state[_PROBLEM] = translate(error)
        return ""
    alike = {name: file for name, file in own_files(_kind_of(text).PREFIX).items() if name != text} | {text: data}
    others = {name: file for name, file in _all().items() if _kind_of(name) is not _kind_of(text)}
    st.session_state[_OWN] = others | dict(list(alike.items())[-MOST_OWN:])
    return text


def own_files(prefix: str = image_files.PREFIX) -> Mapping[str, bytes]:
    """Return the files of one kind of this session by their texts, the newest last."""
    return {name: file for name, file in _all().items() if name.startswith(prefix)}


def bring_back() -> None:
    """Give the process the files of this session that it has dropped."""
    for text, data in _all().items():
        if not (kind := _kind_of(text)).is_kept(text):
            kind.keep(text, data)


def problem() -> str:
    """Return why the last file could not be read, or ""."""
    return st.session_state.get(_PROBLEM, "")


def _all() -> Mapping[str, bytes]:
    return st.session_state.get(_OWN, {})


def _kind_of(text: str):
    return next(kind for kind in _KINDS if text.startswith(kind.PREFIX))
