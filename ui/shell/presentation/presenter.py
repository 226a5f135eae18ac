"""The presenter switch: large type, full contrast, fewer controls, for a projector. Part of the focus, so of links."""

from pathlib import Path
from typing import Any, Literal

import streamlit as st

from charts.toolkit.altair_size import enlarge as enlarge_altair
from charts.toolkit.style import enlarge
from ui.shell import focus as shared_focus

_STYLE = Path(__file__).with_name("presenter.css")
_FACTOR = 1.3  # 22 px in place of 17
_ROOM = 395  # pixels that a projector of 720 leaves below what stands above a figure


def presenting() -> bool:
    return bool(shared_focus.current().presenter)


def labels() -> Literal["visible", "collapsed"]:
    """Of controls above a picture: who presents knows what they are called, and the picture needs their place."""
    return "collapsed" if presenting() else "visible"


def style_for_a_room() -> None:
    """The style sheet, while somebody presents; once per run."""
    if presenting():
        st.html(_STYLE)


def for_a_room(figure: Any, *, kind: str) -> Any:
    """A figure with letters as large as those around it, while somebody presents, and as high as there is room."""
    if not presenting():
        return figure
    if kind != "plotly":
        return enlarge_altair(figure, factor=_FACTOR)
    larger = enlarge(figure, factor=_FACTOR)
    plain = larger.layout.height / _FACTOR
    return larger.update_layout(height=min(larger.layout.height, max(plain, _ROOM)))  # its letters grow, whatever room
