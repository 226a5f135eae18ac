"""The presenter switch: large type, full contrast, fewer controls, for a projector; part of the focus."""

from pathlib import Path
from typing import Literal

import streamlit as st

from ui.shell import focus as shared_focus

_STYLE = Path(__file__).with_name("presenter.css")
_FACTOR = 1.3  # 22 px instead of 17


def is_presenting() -> bool:
    """Return whether the presenter switch is on."""
    return bool(shared_focus.current().presenter)


def labels() -> Literal["visible", "collapsed"]:
    """Return the visibility of labels above a figure: presenters know them and need the space."""
    return "collapsed" if is_presenting() else "visible"


def style_for_a_room() -> None:
    """Add the presenter's style sheet if the switch is on; once per run."""
    if is_presenting():
        st.html(_STYLE)


def room_width(pixels: int) -> int:
    """Return the width of a control for larger letters during a presentation."""
    return round(pixels * _FACTOR) if is_presenting() else pixels
