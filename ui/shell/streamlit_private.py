"""What this project takes from Streamlit beyond its documentation: named here, and nowhere else.

A minor version of Streamlit may change any of it, so ``requirements.txt`` pins one. Three kinds:

- the context of the running script: whether there is one, of which page and session, how the browser came there, and
  where it may be stopped;
- the runtime, by which ``deploy/warm_up.py`` opens pages before anybody comes, which sessions are there, and its
  settings; the type of a page of the navigation;
- ``TEST_IDS``, by which style sheets find Streamlit's own elements in the page (``data-testid``).
"""

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from streamlit import config
from streamlit.navigation.page import StreamlitPage
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.runtime import Runtime
from streamlit.runtime.scriptrunner import get_script_run_ctx
from streamlit.runtime.session_manager import SessionClient

__all__ = [
    "TEST_IDS",
    "BackMsg",
    "ForwardMsg",
    "Runtime",
    "SessionClient",
    "StreamlitPage",
    "config",
    "is_connected",
    "page_hash",
    "runs_a_script",
    "session_id",
    "undisturbed",
    "went_back_or_forward",
]

P, T = ParamSpec("P"), TypeVar("T")

TEST_IDS = {
    *("stBaseButton-primary", "stButton", "stButtonGroup", "stCaptionContainer", "stColumn", "stFullScreenFrame"),
    *(
        "stHeader",
        "stHorizontalBlock",
        "stLayoutWrapper",
        "stMain",
        "stMainBlockContainer",
        "stMarkdownContainer",
        "stMetricDelta",
        "stMetricValue",
    ),
    *("stSidebar", "stSidebarContent", "stSidebarHeader", "stSidebarUserContent", "stTopNavLink", "stVerticalBlock"),
}


def runs_a_script() -> bool:
    """Whether Streamlit runs a page in this thread; not in a test of a function, or in a plain script."""
    return get_script_run_ctx(suppress_warning=True) is not None


def page_hash() -> str:
    """Names the page that runs; empty where none does."""
    return getattr(get_script_run_ctx(suppress_warning=True), "page_script_hash", "")


def session_id() -> str:
    """Names the browser session that runs; empty where none does."""
    return getattr(get_script_run_ctx(suppress_warning=True), "session_id", "")


def is_connected(session: str) -> bool:
    """Whether the browser of that session is there; it may come back for two minutes after it has gone."""
    return bool(Runtime.instance().is_active_session(session))


def went_back_or_forward() -> bool:
    """Whether the browser's own buttons led here. An empty address then means the defaults, not a change of page."""
    return bool(getattr(get_script_run_ctx(suppress_warning=True), "is_history_navigation", False))


def undisturbed(callback: Callable[P, T]) -> Callable[P, T]:
    """A widget's callback that always comes to its end.

    When the reader clicks again, Streamlit stops the running script at its next look at the session, even in the middle
    of a callback, and does not call that callback again: what the reader typed would be lost.
    """

    @wraps(callback)
    def whole(*args: P.args, **kwargs: P.kwargs) -> T:
        session = getattr(get_script_run_ctx(suppress_warning=True), "session_state", None)
        if session is None:
            return callback(*args, **kwargs)
        stop_if_asked = session._yield_callback
        object.__setattr__(session, "_yield_callback", lambda: None)  # its own __setattr__ would store a value
        try:
            return callback(*args, **kwargs)
        finally:
            object.__setattr__(session, "_yield_callback", stop_if_asked)

    return whole
