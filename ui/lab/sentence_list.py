"""Sentences to measure on: the included ones, or the lines of the reader's own file.

A file given on one page is used on the others, too, as long as the session lasts.
"""

from dataclasses import dataclass

import streamlit as st

from charts.toolkit.numbers import whole
from transformer.text.sentence_files import SHIPPED, as_text, read_sentences, sentence_digest, split_sentences
from ui.server.limits import limits, public
from ui.words.texts import as_plain, common

_OWN = "sentence list: own"


@dataclass(frozen=True)
class SentenceList:
    """A list of sentences; ``name`` is that of the file."""

    name: str
    sentences: tuple[str, ...]

    @property
    def digest(self) -> str:
        """Hash of the sentences."""
        return sentence_digest(self.sentences)

    @property
    def python(self) -> str:
        """Return the Python code for the sentences, after importing ``read_sentences``."""
        return "read_sentences()" if self.name == SHIPPED.name else f"read_sentences({self.name!r})"


def sentence_list() -> SentenceList:
    """Return the current list, and draw a button for giving another; a public server accepts no files."""
    if public():
        return SentenceList(SHIPPED.name, read_sentences())
    allowed = limits()
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
    return st.session_state.get(_OWN) or SentenceList(SHIPPED.name, read_sentences())


def _take(name: str, content: bytes) -> None:
    try:
        text = as_text(content)
    except UnicodeDecodeError:
        st.warning(common("sentences.not_text", name=as_plain(name)), icon=":material/edit:")
        return
    lines, allowed = split_sentences(text), limits()
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
