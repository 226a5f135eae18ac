"""What a model is told about the sentence: which language it reads and writes, and which task the sentence begins with.

M2M100 and NLLB are told both languages, Marian's models of many languages the one that they write. T5's config names
what its sentences began with in training ("translate English to French: ").
"""

from collections.abc import Sequence
from dataclasses import replace

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from transformer import Checkpoint
from transformer.files.languages import languages_of
from ui.server.streamlit_private import page_hash
from ui.shell import focus as shared_focus
from ui.shell.focus import Focus, start_of
from ui.shell.openings import is_ready
from ui.words.texts import common, model_sentences, quoted

# A task as long as "translate English to Romanian: " is read whole.
_STYLE = "<style>[class*=st-key-choose-begins] input { padding-inline: 0.4rem 0; font-size: 0.78rem; }</style>"
_HALF = 104  # pixels: two in the sidebar's row


def fit_languages(focus: Focus, checkpoint: Checkpoint) -> tuple[Focus, tuple[str, ...]]:
    """The focus without languages that this checkpoint does not know, and a line for each of them."""
    notes = []
    for name, known in zip(("reads", "writes"), languages_of(checkpoint), strict=True):
        if (code := getattr(focus, name)) and code not in known:
            notes.append(common("note.spoken", code=quoted(code), name=quoted(checkpoint.name)))
            focus = replace(focus, **{name: ""})
    return focus, tuple(notes)


def spoken_languages(focus: Focus, checkpoint: Checkpoint, room: DeltaGenerator) -> None:
    """One row in ``room``, below the sentence, where the model leaves a choice; nothing elsewhere."""
    reads, writes = languages_of(checkpoint)
    starts = checkpoint.framing.starts
    if not (reads or writes or starts):
        return
    width = _HALF if reads and writes else "stretch"
    with room.container(horizontal=True, gap="xsmall"):
        if reads:
            _choose("reads", reads, checkpoint.tokenizer.source_language, width)
        if writes:
            _choose("writes", writes, checkpoint.tokenizer.target_language, width)
        if starts:
            begun = start_of(focus.sentence, starts)
            st.html(_STYLE)
            _choose("begins", starts, begun or None, width)
    if starts and not begun:
        room.caption(common("spoken.begins_missing"))


def _choose(name: str, options: Sequence[str], value: str | None, width: int | str) -> None:
    """Set from the focus, and reports to it; it keeps nothing. On another page it is another widget."""
    key = f"choose {name} {page_hash()}"
    if st.session_state.get(key) != value:
        st.session_state[key] = value
    st.selectbox(
        common(f"spoken.{name}"),
        options,
        index=None,
        placeholder=common(f"spoken.{name}_none"),
        key=key,
        width=width,
        help=common(f"spoken.{name}_help"),
        on_change=_begin if name == "begins" else _speak,
        args=(key, options) if name == "begins" else (key, name),
    )


def _speak(key: str, name: str) -> None:
    shared_focus.change(**{name: st.session_state[key] or ""})


def _begin(key: str, starts: Sequence[str]) -> None:
    """The sentence with another beginning, or with none. One of the app's examples gives way to that of the task."""
    sentence, start = shared_focus.current().sentence, st.session_state[key] or ""
    rest = sentence.removeprefix(start_of(sentence, starts))
    if is_ready(sentence, starts):
        rest = model_sentences()["task_example"].get(start, rest)
    shared_focus.change(sentence=start + rest)
