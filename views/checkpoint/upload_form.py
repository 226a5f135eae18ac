"""The form that opens a reader's own checkpoint, which every page can then show."""

from dataclasses import asdict

import streamlit as st

import transformer
from charts.toolkit.numbers import whole
from transformer.files.received_files import MAX_BYTES
from ui.compute.loading import for_one_person, open_folder
from ui.compute.uploads import MOST_OWN, keep
from ui.page.page import Page
from ui.server.limits import limits, public
from ui.server.streamlit_private import forget_files
from ui.shell import focus as shared_focus
from ui.words.figure_texts import problem_text
from ui.words.texts import as_plain

_ROUND = "upload form: round"  # a new key resets the widget


def upload_form(p: Page) -> None:
    """Accept the files. A sentence names what is wrong with them, and the page stays as it was.

    On a public server, list what is disabled and why.
    """
    if public():
        _what_is_off(p)
        return
    with st.expander(p.text["own"], icon=":material/upload:", key="upload"):
        if for_one_person():
            _folder_form(p)
        files = ", ".join(f"`{name}`" for name in MAX_BYTES)
        st.markdown(p.text["own_explained"].format(files=files, own=MOST_OWN))
        with st.form("upload form", border=False, enter_to_submit=False):
            sent = st.file_uploader(
                p.text["own_files"],
                accept_multiple_files=True,
                max_upload_size=max(MAX_BYTES.values()) // 1_000_000,
                key=f"upload {st.session_state.get(_ROUND, 0)}",
            )
            if not st.form_submit_button(p.text["own_open"], icon=":material/visibility:"):
                return
        try:
            name = keep({file.name: file.getvalue() for file in sent})
        except transformer.CheckpointError as error:
            st.warning(as_plain(problem_text(error)), icon=":material/upload:")
            return
        forget_files(sent)
        st.session_state[_ROUND] = st.session_state.get(_ROUND, 0) + 1
        shared_focus.change(checkpoint=name)
        st.rerun()


def _what_is_off(p: Page) -> None:
    with st.expander(p.text["public"], icon=":material/public:", key="public"):
        allowed = limits()
        numbers = {name: whole(value) for name, value in asdict(allowed).items()}
        st.markdown(p.text["public_explained"].format(**numbers))


def _folder_form(p: Page) -> None:
    """Draw the field for the path of a folder on this machine; only the local user can type one."""
    with st.form("folder form", border=False):
        typed = st.text_input(
            p.text["folder"], placeholder="~/models/opus-mt-en-fr", key="typed folder", max_chars=1000
        )
        if not st.form_submit_button(p.text["folder_open"], icon=":material/folder_open:") or not typed.strip():
            return
    try:
        name = open_folder(typed)
    except (transformer.CheckpointError, OSError) as error:
        st.warning(as_plain(problem_text(error)), icon=":material/folder_open:")
        return
    shared_focus.change(checkpoint=name)
    st.rerun()
