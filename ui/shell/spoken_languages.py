"""Languages and task of the sentence, for models that require them.

M2M100 and NLLB are given both languages, Marian's multilingual models the output language. T5's config lists the
prefixes of its training sentences ("translate English to French: ").
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
from ui.words.texts import common, model_sentences, quote

# The box must fit a task as long as "translate English to Romanian: ".
_STYLE = "<style>[class*=st-key-choose-begins] input { padding-inline: 0.4rem 0; font-size: 0.78rem; }</style>"
_HALF = 104  # pixels; two fit in the sidebar's row


def fit_languages(focus: Focus, checkpoint: Checkpoint) -> tuple[Focus, tuple[str, ...]]:
    """Return the focus without languages that this checkpoint lacks, and a line for each of them."""
    notes = []
    for name, known in zip(("reads", "writes"), languages_of(checkpoint), strict=True):
        if (code := getattr(focus, name)) and code not in known:
            notes.append(common("note.spoken", code=quote(code), name=quote(checkpoint.name)))
            focus = replace(focus, **{name: ""})
    return focus, tuple(notes)


def spoken_languages(focus: Focus, checkpoint: Checkpoint, room: DeltaGenerator) -> None:
    """Draw a row in ``room``, below the sentence, if the model has a choice."""
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
    """Draw a widget that is set from the focus and reports to it, but stores nothing.

    It is a new widget on each page.
    """
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
    """Replace the task prefix of the sentence; one of the app's examples is replaced by that of the task."""
    sentence, start = shared_focus.current().sentence, st.session_state[key] or ""
    rest = sentence.removeprefix(start_of(sentence, starts))
    if is_ready(sentence, starts):
        rest = model_sentences()["task_example"].get(start, rest)
    shared_focus.change(sentence=start + rest)
