"""Content below the first screen of a page, drawn after the figure above it.

The browser lays out simultaneous elements together: content sent with the figure would delay it by a quarter of a
second or more.
"""

from collections.abc import Callable

import streamlit as st

from charts.canvas.module import loader_script
from ui.page.page import guard
from ui.shell.fragments import fragment

_PAINTED = "the first picture is painted"  # key in the session
_component = st.components.v2.component("glassformer_painted", js=loader_script())


@fragment
def below_the_picture(draw: Callable[[], None]) -> None:
    """Call ``draw``; on the first page of a visit only once its figure has been drawn.

    Without a browser it is called at once. ``draw`` may run without its page: a click in it that changes the focus
    would not be visible above.
    """
    if st.context.url and not st.session_state.get(_PAINTED):
        st.skeleton()
        _component(key="painted", on_painted_change=_note)
        return
    with guard():
        draw()


def _note() -> None:
    st.session_state[_PAINTED] = True
