"""All uses of undocumented parts of Streamlit in this project.

A minor version of Streamlit may change any of it, so ``requirements.in`` pins one. There are ten kinds:

- the context of the running script: whether there is one, its page and session, and how the browser came there;
- how it calls the callbacks of widgets, where this module fixes a fault of Streamlit (``keep_callbacks_whole``);
- the values of widgets that a browser sends, of which forged ones are ignored (``ignore_forged_widgets``);
- the states of a page's widgets, whose texts change with the language (``resend_choices``);
- its cookie against forged requests, which alone stays the same when a browser reloads a page;
- its address for files (``route_uploads_through``), and the files that it holds;
- the name of the threads that run pages, for which a server waits as it ends;
- whether a session that returns watches files, where this module fixes another fault (``watch_no_files_on_return``);
- the runtime, by which ``deploy/warm_up.py`` opens pages before the first visitor, its sessions and its settings;
  the type of a page of the navigation;
- ``TEST_IDS``, by which style sheets find Streamlit's own elements in the page (``data-testid``).
"""

import hmac
import secrets
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from threading import RLock

import streamlit as st
from starlette.exceptions import HTTPException
from starlette.routing import Route
from starlette.types import Receive, Scope, Send
from streamlit import config, file_util
from streamlit.navigation.page import StreamlitPage
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.WidgetStates_pb2 import WidgetStates
from streamlit.runtime import Runtime
from streamlit.runtime.app_session import AppSession
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.runtime.scriptrunner import get_script_run_ctx
from streamlit.runtime.session_manager import SessionClient
from streamlit.runtime.state.common import GENERATED_ELEMENT_ID_PREFIX
from streamlit.runtime.state.safe_session_state import SafeSessionState
from streamlit.runtime.state.session_state import STREAMLIT_INTERNAL_KEY_PREFIX, Serialized, SessionState, WStates
from streamlit.runtime.stats import StatsManager
from streamlit.runtime.uploaded_file_manager import UploadedFile, UploadFileUrlInfo
from streamlit.web.server.starlette.starlette_app_utils import decode_xsrf_token_string
from streamlit.web.server.starlette.starlette_server_config import XSRF_COOKIE_NAME
from streamlit.web.server.starlette.starlette_websocket import is_host_allowed

__all__ = [
    "SCRIPT_THREAD",
    "TEST_IDS",
    "BackMsg",
    "ForwardMsg",
    "Runtime",
    "SessionClient",
    "StreamlitPage",
    "browser_token",
    "config",
    "drop_files_without_visitor",
    "forget_files",
    "hash_of",
    "ignore_settings_of_current_folder",
    "is_connected",
    "is_upload_address",
    "may_come_back",
    "names_our_host",
    "page_hash",
    "rerun",
    "resend_choices",
    "route_uploads_through",
    "runs_a_fragment",
    "runs_a_script",
    "sent_bytes",
    "session_id",
    "take_no_files",
    "tell_no_metrics",
    "went_back_or_forward",
]

SCRIPT_THREAD = "ScriptRunner.scriptThread"  # the name of a thread that runs a page
_UPLOAD_ROUTE = "/_stcore/upload_file/{session_id}/{file_id}"
_GIVEN_OUT = (GENERATED_ELEMENT_ID_PREFIX, STREAMLIT_INTERNAL_KEY_PREFIX)
_SENT_AS_TEXT = ("string_value", "string_array_value")  # what a widget's value is in a message of the browser
_SECRET, _NONCE_DIGITS = secrets.token_bytes(32), 16

TEST_IDS = {
    "InputInstructions",
    "stBaseButton-primary",
    "stButton",
    "stButtonGroup",
    "stCaptionContainer",
    "stCheckbox",
    "stColumn",
    "stElementContainer",
    "stElementToolbar",
    "stExpandSidebarButton",
    "stExpander",
    "stExpanderDetails",
    "stFullScreenFrame",
    "stHeader",
    "stHorizontalBlock",
    "stLayoutWrapper",
    "stMain",
    "stMainBlockContainer",
    "stMarkdown",
    "stMarkdownContainer",
    "stMenuButton",
    "stMetricDelta",
    "stMetricLabel",
    "stMetricValue",
    "stPageLink-NavLink",
    "stPopover",
    "stPopoverButton",
    "stSelectbox",
    "stSidebarContent",
    "stSidebarHeader",
    "stSidebarUserContent",
    "stTextInputRootElement",
    "stTooltipIcon",
    "stTopNavLink",
    "stVerticalBlock",
    "stWidgetLabel",
}


def runs_a_script() -> bool:
    """Return whether Streamlit runs a page in this thread; not in a unit test or a plain script."""
    return get_script_run_ctx(suppress_warning=True) is not None


def page_hash() -> str:
    """Return the hash of the running page; "" if there is none."""
    return getattr(get_script_run_ctx(suppress_warning=True), "page_script_hash", "")


def hash_of(page: StreamlitPage) -> str:
    """Return what ``page_hash`` returns while that page runs."""
    return page._script_hash


def runs_a_fragment() -> bool:
    """Return whether a fragment runs without the rest of its page."""
    return bool(getattr(get_script_run_ctx(suppress_warning=True), "fragment_ids_this_run", None))


def session_id() -> str:
    """Return the id of the running browser session; "" if there is none."""
    return getattr(get_script_run_ctx(suppress_warning=True), "session_id", "")


def browser_token() -> str:
    """Return a random text that a browser keeps when it reloads a page; "" without a cookie."""
    token, _time = decode_xsrf_token_string(st.context.cookies.get(XSRF_COOKIE_NAME, ""))
    return token.hex() if token else ""


def is_connected(session: str) -> bool:
    """Return whether the browser of a session is connected; it may reconnect within an hour."""
    return bool(Runtime.instance().is_active_session(session))


def may_come_back(session: str) -> bool:
    """Return whether a session is connected, or could still reconnect."""
    return Runtime.exists() and Runtime.instance()._session_mgr.get_session_info(session) is not None


def names_our_host(host: str | None) -> bool:
    """Return whether a request's Host is one of ``server.allowedHosts``; any Host is, if that is empty."""
    return is_host_allowed(host)


def ignore_settings_of_current_folder(app: Path) -> None:
    """Ignore ``.streamlit/config.toml`` in the current folder, but not those of ``app`` and home.

    A downloaded model may contain one that admits other sites (``server.allowedHosts``). ``streamlit run`` has read it
    before the app begins; a server of our own calls this first.
    """

    def beside_the_app(*names: str) -> str:
        """Return the path of files next to the app."""
        return str(app.joinpath(".streamlit", *names))

    file_util.get_project_streamlit_file_path = beside_the_app


def route_uploads_through(take: Callable[..., Awaitable[None]]) -> None:
    """Let ``take(session, file, scope, receive, send, pass_on)`` handle uploads from now on.

    This also applies to servers that are already running; ``pass_on(scope, receive, send)`` lets Streamlit accept the
    file.
    """
    original = Route.handle

    async def handle(route: Route, scope: Scope, receive: Receive, send: Send) -> None:
        async def pass_on(scope: Scope, receive: Receive, send: Send) -> None:
            await original(route, scope, receive, send)

        if route.path.endswith(_UPLOAD_ROUTE) and scope["method"] == "PUT":
            named = scope["path_params"]
            await take(named["session_id"], named["file_id"], scope, receive, send, pass_on)
        else:
            await pass_on(scope, receive, send)

    Route.handle = handle


def is_upload_address(session: str, file: str) -> bool:
    """Return whether this server gave a session this address to upload a file to."""
    return hmac.compare_digest(file.encode(), _upload_id(session, file[:_NONCE_DIGITS]).encode())


def _upload_id(session: str, nonce: str) -> str:
    """Return the nonce and its signature, so that issued addresses need not be remembered."""
    return nonce + hmac.new(_SECRET, f"{session}/{nonce}".encode(), "sha256").hexdigest()[:32]


def _signed_upload_urls(
    manager: MemoryUploadedFileManager, session_id: str, file_names: Sequence[str]
) -> list[UploadFileUrlInfo]:
    files = [_upload_id(session_id, secrets.token_hex(_NONCE_DIGITS // 2)) for _ in file_names]
    urls = [f"{manager.endpoint}/{session_id}/{file}" for file in files]
    return [
        UploadFileUrlInfo(file_id=file, upload_url=url, delete_url=url) for file, url in zip(files, urls, strict=True)
    ]


MemoryUploadedFileManager.get_upload_urls = _signed_upload_urls


def sent_bytes() -> dict[str, list[int]]:
    """Return the sizes of the uploaded files that Streamlit holds, by session."""
    manager = Runtime.instance().uploaded_file_mgr
    with manager._lock:
        return {session: [len(file.data) for file in files.values()] for session, files in manager.file_storage.items()}


def forget_files(files: Iterable[UploadedFile]) -> None:
    """Free uploaded files of the running session once they are used."""
    context = get_script_run_ctx(suppress_warning=True)
    for file in files:
        context.uploaded_file_mgr.remove_file(context.session_id, file.file_id)


def drop_files_without_visitor() -> None:
    """Free the uploaded files of disconnected sessions; Streamlit does so minutes later, or not at all."""
    manager = Runtime.instance().uploaded_file_mgr
    for session in sent_bytes():
        if not is_connected(session):
            manager.remove_session_files(session)


def rerun(session: str) -> None:
    """Run the page of a connected session again, as after a click; call it on the server's event loop."""
    if found := Runtime.instance()._session_mgr.get_active_session_info(session):
        found.session.request_rerun(None)


def take_no_files() -> None:
    """Let Streamlit refuse all uploaded files from now on, even empty ones."""
    config.set_option("server.maxUploadSize", 0)  # a larger body is not even read
    MemoryUploadedFileManager.add_file = _refuse_file


def _refuse_file(*_: object, **__: object) -> None:
    raise HTTPException(status_code=403, detail="This server is public and accepts no files.")


def tell_no_metrics() -> None:
    """Let Streamlit's metrics address return nothing from now on."""
    StatsManager.get_stats = lambda *_, **__: {}


def went_back_or_forward() -> bool:
    """Return whether the browser's Back or Forward led here; an empty address then means the defaults."""
    return bool(getattr(get_script_run_ctx(suppress_warning=True), "is_history_navigation", False))


def resend_choices() -> None:
    """Send all chosen options to the browser again in this run; call it before any widget is drawn.

    A browser reports an option by its text. When the language changes, the options get other texts, but the browser
    keeps the old one and sends it with the next click, where it would count as a new choice that does not exist.
    """
    context = get_script_run_ctx(suppress_warning=True)
    if context is None:
        return
    state = context.session_state._state
    keys = state._key_id_mapper.id_key_mapping
    for widget, metadata in tuple(state._new_widget_state.widget_metadata.items()):
        if metadata.value_type in _SENT_AS_TEXT and (key := keys.get(widget)) in st.session_state:
            st.session_state[key] = st.session_state[key]


def keep_callbacks_whole() -> None:
    """Let all callbacks of a reader's click finish before the reader's next script begins, from now on.

    By default, Streamlit stops a script that another click has overtaken, even in the middle of a callback, and starts
    the next script, which regards the widget's value as known and calls nothing. So a sentence was lost if
    something else was clicked at once.
    """
    original = SafeSessionState.on_script_will_rerun

    def call_in_whole(session: SafeSessionState, *args: object, **more: object) -> None:
        stop_if_overtaken = session._yield_callback
        with _lock_of(session_id()):
            stop_if_overtaken()
            object.__setattr__(session, "_yield_callback", lambda: None)  # its own __setattr__ would store a value
            try:
                original(session, *args, **more)
            finally:
                object.__setattr__(session, "_yield_callback", stop_if_overtaken)

    SafeSessionState.on_script_will_rerun = call_in_whole


@lru_cache(maxsize=4096)  # sessions
def _lock_of(session: str) -> RLock:
    return RLock()


def watch_no_files_on_return() -> None:
    """Let a session that returns watch files only if the setting says so, as a new one does.

    The setting is ``server.fileWatcherType``. By default, Streamlit looks at the files of all modules after the next
    run of a session that has lost its connection, such as a phone that slept. This blocked the server for 0.3 s.
    """
    original = AppSession.register_file_watchers

    def register(session: AppSession) -> None:
        if config.get_option("server.fileWatcherType") != "none":
            original(session)

    AppSession.register_file_watchers = register


_NUMBERS = {"int_value", "double_value"}  # a box for integers sends one kind and is registered with the other


def ignore_forged_widgets() -> None:
    """Ignore widget ids and kinds of values that no page of this server can have sent.

    By default, Streamlit takes another id for a key of the session's state. Each later run of the session then ends in
    a long traceback in the log, as it does after a value that a widget cannot have.
    """
    take, read = SessionState.set_widgets_from_proto, WStates.__getitem__

    def take_known_ids(state: SessionState, message: WidgetStates) -> None:
        given_out = [widget for widget in message.widgets if widget.id.startswith(_GIVEN_OUT)]
        take(state, message if len(given_out) == len(message.widgets) else WidgetStates(widgets=given_out))

    def read_possible_value(states: WStates, widget: str) -> object:
        sent, metadata = states.states.get(widget), states.widget_metadata.get(widget)
        if not isinstance(sent, Serialized) or metadata is None:
            return read(states, widget)
        kinds = {sent.value.WhichOneof("value"), metadata.value_type} - {None}
        try:
            if len(kinds) < 2 or kinds == _NUMBERS:
                return read(states, widget)
        except Exception:  # whatever a widget's own reader raises for a text that is none of its values
            pass
        raise KeyError(widget)  # as if nothing had been sent

    SessionState.set_widgets_from_proto, WStates.__getitem__ = take_known_ids, read_possible_value


keep_callbacks_whole()
ignore_forged_widgets()
watch_no_files_on_return()
