"""A labelled button that copies a text; Streamlit’s own icon in a code block needs a mouse."""

from pathlib import Path

from ui.shell.events import component
from ui.words.texts import common

_component = component("copying", Path(__file__).with_name("copying.js"))


def copy_button(text: str, *, label: str, key: str) -> None:
    """Draw a button that copies ``text`` and confirms it for a moment."""
    _component(key=key, data={"text": text, "label": label, "done": common("share.copied")})
