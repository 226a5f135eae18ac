"""The presenter switch: large type, full contrast, fewer controls, for a projector; part of the focus."""

from pathlib import Path
from typing import Any, Literal

import streamlit as st

from charts.toolkit.altair_size import enlarge as enlarge_altair
from charts.toolkit.style import enlarge
from ui.shell import focus as shared_focus

_STYLE = Path(__file__).with_name("presenter.css")
_FACTOR = 1.3  # 22 px instead of 17
_ROOM = 350  # pixels left for a figure on a projector 720 pixels high


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


def for_a_room(figure: Any, *, kind: str) -> Any:
    """During a presentation, fit a figure's letters to the text, and its height to the space."""
    if not is_presenting():
        return figure
    if kind != "plotly":
        return enlarge_altair(figure, factor=_FACTOR)
    larger = enlarge(figure, factor=_FACTOR)
    plain = larger.layout.height / _FACTOR
    # The letters grow even if there is no space.
    return larger.update_layout(height=min(larger.layout.height, max(plain, _ROOM)))
