"""The sentence in a box above the figure on a phone, where the sidebar is folded away.

A wide window has the box of the sidebar, and hides this one (``ui/page/page.css``).
"""

from pathlib import Path

import streamlit as st

from transformer.config import ModelConfig, PictureConfig
from ui.shell import focus as shared_focus
from ui.shell.events import component, heard
from ui.shell.focus import Focus
from ui.shell.navigation import NO_SENTENCE
from ui.words.texts import common

KEY = "phone sentence"
_component = component("sentence_box", Path(__file__).with_name("sentence_box.js"))


def sentence_box(page: str, focus: Focus, config: ModelConfig) -> None:
    """Draw the box, or a button that opens the sidebar for a model that reads an image."""
    if page in NO_SENTENCE:
        return
    kind = "text"
    if config.reads_images:
        kind = "drawing" if isinstance(config, PictureConfig) else "image"
    data = {
        "sentence": focus.sentence if kind == "text" else None,
        "words": {"run": common("typing.run"), "name": common("box.name"), "box": common(f"box.{kind}")},
    }
    with st.container(key=KEY):
        _component(key="sentence box", data=data, on_sentence_change=_use_sentence)


def _use_sentence() -> None:
    sentence = heard("sentence box", "sentence")
    if isinstance(sentence, str):
        shared_focus.change(sentence=sentence)
