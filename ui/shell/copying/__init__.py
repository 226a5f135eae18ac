"""A button with a name that copies a text; Streamlit’s own icon, in the corner of a code block, is for the mouse."""

from pathlib import Path

from ui.shell.events import component
from ui.words.texts import common

_component = component("copying", Path(__file__).with_name("copying.js"))


def copy_button(text: str, *, label: str, key: str) -> None:
    """Copies ``text``; the button then says so for a moment."""
    _component(key=key, data={"text": text, "label": label, "done": common("share.copied")})
