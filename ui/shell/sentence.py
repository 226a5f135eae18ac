"""The reader's sentence in one wide box above every page, and the space for selectors beside it."""

from pathlib import Path

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from ui.compute.loading import readable_config
from ui.shell import focus as shared_focus
from ui.shell import page_state
from ui.shell.events import component, heard, nothing
from ui.shell.focus import Focus
from ui.shell.navigation import NO_SENTENCE
from ui.words.once_a_run import once_a_run
from ui.words.texts import common

KEY = "sentence"
_LINES, _KEPT = "sentence has lines", "sentence kept"
PAUSE = "300ms"  # in typing, after which the page follows
_component = component("sentence", Path(__file__).with_suffix(".js"))
_STYLE = Path(__file__).with_name("opening.css")


def is_sentence_read() -> bool:
    """Return whether the page that is drawn shows something of the sentence."""
    return page_state.current_page() not in NO_SENTENCE or bool(page_state.values("exercise"))


def sentence_box() -> None:
    """Draw the box once per run, before the page, so that it stays while another page opens."""
    focus = shared_focus.current()
    config = readable_config(focus.checkpoint)
    with st.container(horizontal=True, vertical_alignment="center", gap="xsmall", key="sentence row"):
        if is_sentence_read() and not (config and config.reads_images):
            _box(focus, of_pair=config is not None and config.predicts_next_sentence)
        with st.container(key="sentence script"):
            st.html(_STYLE)
            _component(key=_KEPT, on_again_change=nothing, on_typed_change=_bring_back)
        spaces()["beside"] = st.container(horizontal=True, gap="xsmall", width="content", key="beside sentence")


def _box(focus: Focus, *, of_pair: bool) -> None:
    """Draw the box, set from the focus; it is never set while the reader types in it."""
    name, placeholder = ("pair", "pair_placeholder") if of_pair else ("name", "placeholder")
    shared = {"key": KEY, "label_visibility": "collapsed", "placeholder": common(f"sentence.{placeholder}")}
    is_new, has_lines = KEY not in st.session_state, focus.way == "chat" or "\n" in focus.sentence
    is_other = st.session_state.get(_LINES, has_lines) != has_lines  # the new box would hold what it held before
    st.session_state[_LINES] = has_lines
    if not is_new and (is_other or st.session_state[KEY] != focus.sentence):
        st.session_state[KEY] = focus.sentence
    if has_lines:
        typed = st.text_area(common(f"sentence.{name}"), focus.sentence, height=68, on_change=_report, **shared)
    else:
        typed = st.text_input(common(f"sentence.{name}"), focus.sentence, live=PAUSE, on_change=_report, **shared)
    if is_new and typed != focus.sentence:  # what another server did not answer, and the browser sends to this one
        shared_focus.change(sentence=typed)


def _report() -> None:
    shared_focus.type_sentence(st.session_state[KEY])


def _bring_back() -> None:
    """Take what was typed before a reload, which the server had not answered."""
    if isinstance(text := heard(_KEPT, "typed"), str):
        shared_focus.type_sentence(text)


@once_a_run
def spaces() -> dict[str, DeltaGenerator]:
    """Return "sidebar", above the examples, and "beside" the sentence; none before the frame is drawn."""
    return {}
