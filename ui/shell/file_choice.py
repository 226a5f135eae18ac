"""The choice among image or sound files that a third-party model can read, and what a new file does."""

from collections.abc import Callable, Mapping

import streamlit as st

from ui.server.limits import public
from ui.shell import focus as shared_focus
from ui.shell.focus import Focus
from ui.shell.own_files import take_file
from ui.words.texts import common


def draw_choice(label: str, names: Mapping[str, str], focus: Focus, *, key: str) -> bool:
    """Draw the names of files to choose from; return whether the reader may give another file here.

    Args:
        label: What is chosen.
        names: The files by their texts, with their names.
        focus: Its sentence is the chosen file.
        key: Key of the widget.
    """
    if st.session_state.get(key) != focus.sentence:
        st.session_state[key] = focus.sentence if focus.sentence in names else None
    st.pills(label, list(names), format_func=names.get, key=key, on_change=_choose, args=(key,))
    if public() and not focus.presenter:
        st.caption(common("image.public"))
    return not (focus.presenter or public())


def number_of(key: str) -> int:
    """Return the number in the names of widgets that take a file: another one after each file."""
    return st.session_state.get(key, 0)


def use_file(widget: str, numbers: str, text_of: Callable[[bytes], str]) -> None:
    """Keep the file that a widget has taken, and show it.

    Args:
        widget: Key of the widget.
        numbers: Key of ``number_of``. It changes, so that the server keeps the file once.
        text_of: See ``take_file``.
    """
    sent = st.session_state.get(widget)
    if sent is not None and (text := take_file(sent.getvalue(), text_of)):
        st.session_state[numbers] = number_of(numbers) + 1
        shared_focus.change(sentence=text, target="")


def _choose(key: str) -> None:
    if chosen := st.session_state[key]:
        shared_focus.change(sentence=chosen, target="")
