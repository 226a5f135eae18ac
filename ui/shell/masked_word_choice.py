"""The choice of the masked word, beside the sentence; one choice for all pages."""

from collections import Counter
from dataclasses import replace

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from transformer import Checkpoint
from transformer.runs.masked_word import NONE, masked_word, masks_a_word, words_in
from ui.server.streamlit_private import page_hash
from ui.shell import focus as shared_focus
from ui.shell.focus import Focus
from ui.words.texts import common, quote

_WIDTH = 205  # pixels


def choose_masked_word(focus: Focus, checkpoint: Checkpoint, room: DeltaGenerator) -> tuple[Focus, tuple[str, ...]]:
    """Draw the control in ``room``, unless no word can be masked.

    Return the focus with a word that exists, and a line about one that does not.
    """
    words = words_in(focus.sentence)
    if focus.lesson or not words or not masks_a_word(checkpoint, focus.sentence):
        return focus, ()
    options = [*map(str, range(len(words))), NONE]
    lines: tuple[str, ...] = ()
    if focus.masked and focus.masked not in options:
        lines = (common("note.choice", name="masked", text=quote(focus.masked)),)
        focus = replace(focus, masked="")
    found = masked_word(checkpoint, focus.sentence, focus.masked)
    shown, key = NONE if found is None else str(found.number), f"masked word {page_hash()}"
    if st.session_state.get(key) != shown:
        st.session_state[key] = shown
    room.selectbox(
        common("masked.word"),
        options,
        format_func=_names_of(words).__getitem__,
        key=key,
        label_visibility="collapsed",
        width=_WIDTH,
        on_change=_take,
        args=(key,),
    )
    return focus, lines


def _names_of(words: tuple[str, ...]) -> dict[str, str]:
    """Return the names of the options; a word that occurs several times is numbered."""
    names, seen, counts = {NONE: common("masked.none")}, Counter[str](), Counter(words)
    for number, word in enumerate(words):
        seen[word] += 1
        numbered = word if counts[word] == 1 else f"{word} ({seen[word]})"
        names[str(number)] = common("masked.named", word=numbered)
    return names


def _take(key: str) -> None:
    shared_focus.change(masked=st.session_state[key])
