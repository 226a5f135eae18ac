"""What stands below the first screen of a page. The browser lays out in one piece what comes in one piece: sent along
with the picture above, it would hold that up by a quarter of a second or more."""

from collections.abc import Callable

import streamlit as st

from charts.canvas.module import painted
from ui.shell.fragments import fragment
from ui.shell.page import guard

_PAINTED = "the first picture is painted"  # in the session
_component = st.components.v2.component("glassformer_painted", js=painted())


@fragment
def below_the_picture(draw: Callable[[], None]) -> None:
    """``draw``; on the first page of a visit once its picture has been painted, and at once where there is no browser.

    ``draw`` may run without its page: a click in it that changes the focus would not be seen above.
    """
    if st.context.url and not st.session_state.get(_PAINTED):
        st.skeleton()
        _component(key="painted", on_painted_change=_note)
        return
    with guard():
        draw()


def _note() -> None:
    st.session_state[_PAINTED] = True
