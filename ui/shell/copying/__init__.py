"""A button with a name that copies a text; Streamlit’s own icon, in the corner of a code block, is for the mouse."""

from pathlib import Path

import streamlit as st

from ui.words.texts import common

_HERE = Path(__file__).parent
_component = st.components.v2.component(
    "glassformer_copying",
    css=(_HERE / "copying.css").read_text(encoding="utf-8"),
    js=(_HERE / "copying.js").read_text(encoding="utf-8"),
)


def copy_button(text: str, *, label: str, key: str) -> None:
    """Copies ``text``; the button then says so for a moment."""
    _component(key=key, data={"text": text, "label": label, "done": common("share.copied")})
