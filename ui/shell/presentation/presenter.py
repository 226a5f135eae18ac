"""The presenter switch: large type, full contrast, fewer controls, for a projector; part of the focus."""

from pathlib import Path
from typing import Any, Literal

import streamlit as st

from charts.toolkit.altair_size import enlarge as enlarge_altair
from charts.toolkit.style import enlarge
from ui.shell import focus as shared_focus

_STYLE = Path(__file__).with_name("presenter.css")
_FACTOR = 1.3  # 22 px instead of 17
_SCALE = "presenter scale"  # in the session
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


def scale() -> float:
    """Return how much larger letters are than at 1280 × 720, as the browser reports; otherwise 1."""
    return float(st.session_state.get(_SCALE, 1.0)) if is_presenting() else 1.0


def keep_scale(reported: float) -> None:
    """Keep the scale of the screen for the figures whose letters do not follow the style sheet."""
    st.session_state[_SCALE] = reported


def room_width(pixels: int) -> int:
    """Return the width of a control for larger letters during a presentation."""
    return round(pixels * _FACTOR * scale()) if is_presenting() else pixels


def for_a_room(figure: Any, *, kind: str) -> Any:
    """During a presentation, fit a figure's letters to the text, and its height to the space."""
    if not is_presenting():
        return figure
    factor = _FACTOR * scale()
    if kind != "plotly":
        return enlarge_altair(figure, factor=factor)
    larger = enlarge(figure, factor=factor)
    plain = larger.layout.height / _FACTOR
    # The letters grow even if there is no space.
    return larger.update_layout(height=min(larger.layout.height, max(plain, _ROOM * scale())))
