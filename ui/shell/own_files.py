"""Image files that the reader has given: they stay as long as the session does.

An address holds only their hash. The files are kept by the session, next to its sentence, and lent to the process,
which may drop them; every run brings them back.
"""

from collections.abc import Mapping

import streamlit as st

from transformer.errors import InputError
from transformer.pictures import image_files
from ui.words.texts import problem_text

MOST_OWN = 4  # files per session; the oldest goes first
_OWN, _PROBLEM = "files: own", "files: problem"


def take_file(data: bytes) -> str:
    """Keep a file and return its text; "" if it cannot be read, with the reason in ``problem``."""
    st.session_state[_PROBLEM] = ""
    try:
        text = image_files.image_text(data)
    except InputError as error:
        st.session_state[_PROBLEM] = problem_text(error)
        return ""
    kept = {name: file for name, file in own_files().items() if name != text} | {text: data}
    st.session_state[_OWN] = dict(list(kept.items())[-MOST_OWN:])
    return text


def own_files() -> Mapping[str, bytes]:
    """Return the image files of this session by the texts that name them, the newest last."""
    return st.session_state.get(_OWN, {})


def bring_back() -> None:
    """Put the files of this session that the process has dropped back into its memory."""
    for text, data in own_files().items():
        if not image_files.is_kept(text):
            image_files.keep(text, data)


def problem() -> str:
    """Return why the last file could not be read, or ""."""
    return st.session_state.get(_PROBLEM, "")
