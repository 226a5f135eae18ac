"""Sentences to measure on: the included ones, or the lines of the reader's own file.

A file given on one page is used on the others, too, as long as the session lasts.
"""

from typing import NamedTuple

import streamlit as st

from charts.toolkit.numbers import whole
from transformer.text.sentence_files import SHIPPED, as_text, read_sentences, sentence_digest, split_sentences
from ui.page.page import Page
from ui.server.settings import public, settings
from ui.words.texts import as_plain, common

_OWN = "sentence list: own"


class SentenceList(NamedTuple):
    """A list of sentences; ``name`` is that of the file."""

    name: str
    sentences: tuple[str, ...]


def sentence_list(p: Page) -> SentenceList:
    """Return the current list, which ``p.calc`` knows, and draw a button for giving another one."""
    found = SentenceList(SHIPPED.name, read_sentences())
    if not public():  # a public server accepts no files
        _draw_choice()
        found = st.session_state.get(_OWN) or found
    python = "read_sentences()" if found.name == SHIPPED.name else f"read_sentences({found.name!r})"
    imports = "from transformer.text.sentence_files import read_sentences"
    p.known(found.sentences, python, key=sentence_digest(found.sentences), imports=imports)
    return found


def _draw_choice() -> None:
    allowed = settings()
    with st.popover(common("sentences.choose"), icon=":material/lists:", key="sentence list"):
        sent = st.file_uploader(
            common("sentences.file", most=allowed.sentences, characters=whole(allowed.characters)),
            type="txt",
            max_upload_size=1,
            key="sentence list file",
        )
        if sent is not None:
            _take(sent.name, sent.getvalue())
        if _OWN in st.session_state:
            st.button(
                common("sentences.back"), icon=":material/undo:", key="sentence list back", on_click=_forget,
                disabled=sent is not None, help=common("sentences.back_help") if sent is not None else None,
            )  # fmt: skip


def _take(name: str, content: bytes) -> None:
    try:
        text = as_text(content)
    except UnicodeDecodeError:
        st.warning(common("sentences.not_text", name=as_plain(name)), icon=":material/edit:")
        return
    lines, allowed = split_sentences(text), settings()
    longest = max(map(len, lines[: allowed.sentences]), default=0)
    if not lines:
        st.warning(common("sentences.empty", name=as_plain(name)), icon=":material/edit:")
    elif longest > allowed.characters:
        message = common("sentences.too_long", count=whole(longest), most=whole(allowed.characters))
        st.warning(message, icon=":material/edit:")
    else:
        if len(lines) > allowed.sentences:
            st.caption(common("sentences.cut", most=allowed.sentences, count=len(lines)))
        st.session_state[_OWN] = SentenceList(name, lines[: allowed.sentences])


def _forget() -> None:
    del st.session_state[_OWN]
