"""All uses of undocumented parts of Streamlit, each with its reason; the minor version is pinned.

Besides these, style sheets find Streamlit's own elements by their ``data-testid``, and ``deploy/warm_up.py`` opens the
first pages with the messages and the runtime that are imported here.
"""

from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from threading import RLock

import streamlit as st
from starlette.routing import Route
from starlette.types import Receive, Scope, Send
from streamlit import config, file_util
from streamlit.navigation.page import StreamlitPage
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.WidgetStates_pb2 import WidgetState
from streamlit.runtime import Runtime
from streamlit.runtime.app_session import AppSession
from streamlit.runtime.scriptrunner import get_script_run_ctx
from streamlit.runtime.session_manager import SessionClient
from streamlit.runtime.state.common import GENERATED_ELEMENT_ID_PREFIX, WidgetMetadata, unpack_widget_state_value
from streamlit.runtime.state.safe_session_state import SafeSessionState
from streamlit.runtime.state.session_state import STREAMLIT_INTERNAL_KEY_PREFIX, Serialized, SessionState, WStates
from streamlit.runtime.state.session_state_proxy import get_session_state
from streamlit.runtime.uploaded_file_manager import UploadedFile
from streamlit.web.server.starlette.starlette_app_utils import decode_xsrf_token_string
from streamlit.web.server.starlette.starlette_server_config import XSRF_COOKIE_NAME
from streamlit.web.server.starlette.starlette_websocket import is_host_allowed as names_our_host  # allowedHosts

__all__ = ["BackMsg", "ForwardMsg", "Runtime", "SessionClient", "StreamlitPage", "config", "names_our_host"]
SCRIPT_THREAD = "ScriptRunner.scriptThread"  # the name of a thread that runs a page; a server waits for it at its end
_IDS = (GENERATED_ELEMENT_ID_PREFIX, STREAMLIT_INTERNAL_KEY_PREFIX)  # how ids of widgets begin
_AS_TEXT = ("string_value", "string_array_value")  # how a chosen option is sent
_NUMBERS = {"int_value", "double_value"}  # a box for integers sends one kind and is registered with the other


# ---- the running script: whether there is one, its page and session, and how the browser came there ------------------


def runs_a_script() -> bool:
    """Return whether Streamlit runs a page in this thread; not in a unit test or a plain script."""
    return get_script_run_ctx(suppress_warning=True) is not None


def page_hash() -> str:
    """Return the hash of the running page; "" if there is none."""
    script = get_script_run_ctx(suppress_warning=True)
    return script.page_script_hash if script else ""


def hash_of(page: StreamlitPage) -> str:
    """Return what ``page_hash`` returns while that page runs."""
    return page._script_hash


def runs_a_fragment() -> bool:
    """Return whether a fragment runs without the rest of its page."""
    script = get_script_run_ctx(suppress_warning=True)
    return bool(script and script.fragment_ids_this_run)


def session_id() -> str:
    """Return the id of the running browser session; "" if there is none."""
    script = get_script_run_ctx(suppress_warning=True)
    return script.session_id if script else ""


def went_back_or_forward() -> bool:
    """Return whether the browser's Back or Forward led here; an empty address then means the defaults."""
    script = get_script_run_ctx(suppress_warning=True)
    return bool(script and script.is_history_navigation)


def browser_token() -> str:
    """Return a random text that stays the same when a browser reloads a page; "" without a cookie."""
    token, _time = decode_xsrf_token_string(st.context.cookies.get(XSRF_COOKIE_NAME, ""))
    return token.hex() if token else ""


# ---- the server: sessions, requests, files ---------------------------------------------------------------------------


def is_connected(session: str) -> bool:
    """Return whether the browser of a session is connected; it may reconnect within an hour."""
    return bool(Runtime.instance().is_active_session(session))


def may_come_back(session: str) -> bool:
    """Return whether a session is connected, or could still reconnect."""
    return Runtime.exists() and Runtime.instance()._session_mgr.get_session_info(session) is not None


def rerun(session: str) -> None:
    """Run the page of a connected session again, as after a click; call it on the server's event loop."""
    if found := Runtime.instance()._session_mgr.get_active_session_info(session):
        found.session.request_rerun(None)


def ignore_settings_of_current_folder(app: Path) -> None:
    """Read ``.streamlit/config.toml`` beside ``app`` only: a downloaded one could admit other sites."""
    file_util.get_project_streamlit_file_path = lambda *names: str(app.joinpath(".streamlit", *names))


def check_requests(
    check: Callable[[str, Scope, Receive, Send, Callable[..., Awaitable[None]]], Awaitable[None]],
) -> None:
    """Let ``check(path, scope, receive, send, pass_on)`` handle requests, also of a running server.

    ``path`` is that of Streamlit's route, with the names of its parameters; ``pass_on(scope, receive, send)`` lets
    Streamlit answer.
    """
    original = Route.handle

    async def handle(route: Route, scope: Scope, receive: Receive, send: Send) -> None:
        await check(route.path, scope, receive, send, lambda *request: original(route, *request))

    Route.handle = handle


def sent_bytes() -> dict[str, list[int]]:
    """Return the sizes of the uploaded files that Streamlit holds, by session."""
    manager = Runtime.instance().uploaded_file_mgr
    with manager._lock:
        return {session: [len(file.data) for file in files.values()] for session, files in manager.file_storage.items()}


def forget_files(files: Iterable[UploadedFile]) -> None:
    """Free uploaded files of the running session once they are used."""
    for file in files:
        Runtime.instance().uploaded_file_mgr.remove_file(session_id(), file.file_id)


def drop_files_without_visitor() -> None:
    """Free the uploaded files of disconnected sessions; Streamlit does so minutes later, or not at all."""
    for session in sent_bytes():
        if not is_connected(session):
            Runtime.instance().uploaded_file_mgr.remove_session_files(session)


# ---- widgets ---------------------------------------------------------------------------------------------------------


def resend_choices() -> None:
    """Send all chosen options to the browser again in this run; call it before any widget is drawn.

    A browser reports an option by its text. When the language changes, the options get other texts, but the browser
    keeps the old one and sends it with the next click, where it would count as a new choice that does not exist.
    """
    if not runs_a_script():
        return
    state = get_script_run_ctx().session_state._state
    for widget, metadata in tuple(state._new_widget_state.widget_metadata.items()):
        key = state._key_id_mapper.id_key_mapping.get(widget)
        if metadata.value_type in _AS_TEXT and key in st.session_state:
            st.session_state[key] = st.session_state[key]


def keep_callbacks_whole() -> None:
    """Let all callbacks of a reader's click finish before the reader's next script begins, from now on.

    By default, Streamlit stops a script that another click has overtaken, even in the middle of a callback, and starts
    the next script, which regards the widget's value as already handled and calls no callback. So a typed sentence was
    lost if the reader clicked something else at once.
    """
    original = SafeSessionState.on_script_will_rerun

    def call_in_whole(session: SafeSessionState, *args: object, **more: object) -> None:
        with _lock_of(session_id()):
            session._yield_callback()
            with uninterrupted(session):
                original(session, *args, **more)

    SafeSessionState.on_script_will_rerun = call_in_whole


@contextmanager
def uninterrupted(session: SafeSessionState | None = None) -> Iterator[None]:
    """Let the script run on to the end of this block, even if another click has overtaken it.

    By default, every access to the session's state may end the script.
    """
    session = get_session_state() if session is None else session
    stop_if_overtaken = session._yield_callback
    object.__setattr__(session, "_yield_callback", lambda: None)  # its own __setattr__ would store a value
    try:
        yield
    finally:
        object.__setattr__(session, "_yield_callback", stop_if_overtaken)


@lru_cache(maxsize=4096)  # sessions
def _lock_of(session: str) -> RLock:
    return RLock()


def ignore_forged_widgets() -> None:
    """Ignore widget ids and kinds of values that no page of this server can have sent.

    By default, Streamlit treats an unknown id as a key of the session's state. Every later run of the session then logs
    a long traceback, and so it does after a value that a widget cannot have. A value is read as it arrives, or when its
    widget is first drawn: a browser that was connected to another server sends it before that.
    """
    take, register = WStates.set_widget_from_proto, SessionState._set_widget_metadata

    def take_possible(states: WStates, sent: WidgetState) -> None:
        if sent.id.startswith(_IDS):
            take(states, sent)
            _read_or_forget(states, sent.id)

    def register_and_read(state: SessionState, metadata: WidgetMetadata) -> None:
        register(state, metadata)
        _read_or_forget(state._new_widget_state, metadata.id)

    WStates.set_widget_from_proto, SessionState._set_widget_metadata = take_possible, register_and_read


def _read_or_forget(states: WStates, widget: str) -> None:
    """Read what was sent for a known widget; forget it if the widget cannot have such a value."""
    sent, metadata = states.states.get(widget), states.widget_metadata.get(widget)
    if not isinstance(sent, Serialized) or metadata is None:
        return
    kinds = {sent.value.WhichOneof("value"), metadata.value_type} - {None}
    try:
        if len(kinds) < 2 or kinds == _NUMBERS:
            # As Streamlit does on every read, but the widget's metadata keeps its kind for what is sent next.
            states.set_from_value(widget, metadata.deserializer(unpack_widget_state_value(sent.value)))
            return
    except Exception:  # whatever a widget's own reader raises for a text that is none of its values
        pass
    del states[widget]


def watch_files_only_if_set() -> None:
    """Make a session that reconnects obey ``server.fileWatcherType``, as a new session does.

    By default, a reconnecting session checks the files of all modules, which blocked the server for 0.3 s per phone
    that had slept.
    """
    original = AppSession.register_file_watchers

    def register(session: AppSession) -> None:
        if config.get_option("server.fileWatcherType") != "none":
            original(session)

    AppSession.register_file_watchers = register


keep_callbacks_whole()
ignore_forged_widgets()
watch_files_only_if_set()
