"""What every page needs of the browser itself: the document's language, a way for the keyboard straight to the figure,
and, while a lesson runs, the figure in sight at each of its steps."""

from pathlib import Path

import streamlit as st

from ui.words.texts import common, language

_component = st.components.v2.component(
    "glassformer_frame", js=Path(__file__).with_suffix(".js").read_text(encoding="utf-8")
)


def frame(*, step: str) -> None:
    """Once on every page. ``step`` names the lesson's step that is shown, if any: each brings the figure in sight."""
    _component(key="frame", data={"language": language(), "skip": common("page.skip"), "step": step})
