"""How a generative model reads the typed text: as text, with special tokens, or as a chat.

This module also decides whether the maps include the generated text.
"""

from dataclasses import replace

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from transformer import Checkpoint
from transformer.files.chats import takes_chat, takes_special
from transformer.text.prompt import Prompt
from ui.server.streamlit_private import page_hash
from ui.shell import focus as shared_focus
from ui.shell.focus import Focus
from ui.words.texts import common, quote

WAYS = ("", "special", "chat")


def prompt_of(focus: Focus) -> Prompt | None:
    """Return the prompt settings in the focus; ``None`` for plain text."""
    if focus.way == "chat":
        return Prompt(True, focus.system, focus.variables)
    return Prompt() if focus.way else None


def fit_prompt(focus: Focus, checkpoint: Checkpoint) -> tuple[Focus, tuple[str, ...]]:
    """Return the focus without a prompt setting that this checkpoint lacks, and a line about it."""
    if focus.way in _ways(checkpoint):
        return focus, ()
    return replace(focus, way=""), (common("note.way", way=quote(focus.way), name=quote(checkpoint.name)),)


def choose_prompt(focus: Focus, checkpoint: Checkpoint, room: DeltaGenerator, *, writes: bool) -> None:
    """Draw the controls in ``room``, below the sentence.

    ``writes`` says that the page shows everything that the model generates, whatever is chosen.
    """
    if len(ways := _ways(checkpoint)) == 1:
        return
    with room:
        _box(
            st.segmented_control, "way", focus.way, options=ways, required=True,
            format_func=lambda way: common(f"prompt.way_{way or 'text'}"),
        )  # fmt: skip
        if focus.way == "chat":
            _box(st.text_input, "system", focus.system, placeholder=common("prompt.system_none"))
            _box(st.text_input, "variables", focus.variables, placeholder="{}")
        if not (writes or focus.target):
            _box(st.toggle, "written", bool(focus.written))


def _ways(checkpoint: Checkpoint) -> tuple[str, ...]:
    return WAYS if takes_chat(checkpoint) else WAYS[:2] if takes_special(checkpoint) else WAYS[:1]


def _box(widget: object, name: str, value: object, **more: object) -> None:
    """Draw a widget that is set from the focus and reports to it, but stores nothing.

    It is a new widget on each page.
    """
    key = f"prompt {name} {page_hash()}"
    if st.session_state.get(key) != value:
        st.session_state[key] = value
    help = common(f"prompt.{name}_help")
    widget(common(f"prompt.{name}"), key=key, help=help, on_change=_take, args=(key, name), **more)


def _take(key: str, name: str) -> None:
    value = st.session_state[key]
    shared_focus.change(**{name: int(value) if isinstance(value, bool) else value or ""})
