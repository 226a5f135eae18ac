"""The form that opens a reader's own checkpoint: once its files are sent, every page can show it."""

import streamlit as st

import transformer
from transformer.files.uploads import MOST_BYTES
from ui.compute.uploads import keep
from ui.shell import focus as shared_focus
from ui.shell.page import Page
from ui.words.catalogues import said
from ui.words.texts import as_plain

_ROUND = "upload form: round"  # a new key empties the widget


def upload_form(p: Page) -> None:
    """Take the files as they are. A sentence says what is wrong with them, and the page stays as it was."""
    with st.expander(p.text["own"], icon=":material/upload:", key="upload"):
        st.markdown(p.text["own_explained"].format(files=", ".join(f"`{name}`" for name in MOST_BYTES)))
        with st.form("upload form", border=False, enter_to_submit=False):
            sent = st.file_uploader(
                p.text["own_files"],
                accept_multiple_files=True,
                max_upload_size=max(MOST_BYTES.values()) // 1_000_000,
                key=f"upload {st.session_state.get(_ROUND, 0)}",
            )
            if not st.form_submit_button(p.text["own_open"], icon=":material/visibility:"):
                return
        try:
            name = keep({file.name: file.getvalue() for file in sent})
        except transformer.CheckpointError as error:
            st.warning(as_plain(said(error)), icon=":material/upload:")
            return
        st.session_state[_ROUND] = st.session_state.get(_ROUND, 0) + 1
        shared_focus.change(checkpoint=name)
        st.rerun()
