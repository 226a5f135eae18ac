"""A visitor of the app without a browser, which uses the server's websocket like Streamlit's page.

    async with BrowserSession("http://127.0.0.1:8501") as visitor:
        run = await visitor.open("attention", {"sentence": "I love you."})
        run = await visitor.type_into("sentence", "She is reading.")

It keeps what a browser keeps: the elements on the screen, the states of the widgets, the address, and large messages,
which the server then does not send again. It omits only two things: it draws nothing, and it fetches no files.
"""

from __future__ import annotations

import asyncio
import time
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ClientState_pb2 import ClientState
from streamlit.proto.Element_pb2 import Element
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.WidgetStates_pb2 import WidgetState
from websockets.asyncio.client import ClientConnection, connect

from tests.harness import widget_states
from tests.harness.runs import Run

PATIENCE = 300.0  # seconds after which the visitor gives up an unfinished run
XSRF_COOKIE = "_streamlit_xsrf"


@dataclass
class Shown:
    """An element on the screen, with its script and fragment, and the number of the run that last drew it."""

    element: Element
    script_hash: str
    fragment_id: str
    run: int


class BrowserSession:
    """A visitor of the server at ``base``, e.g. ``http://127.0.0.1:8501``, with one action at a time."""

    def __init__(self, base: str) -> None:
        self.base = base.rstrip("/")
        self.query = ""
        self.screen: dict[tuple[int, ...], Shown] = {}
        self._states: dict[str, WidgetState] = {}
        self._cache: dict[str, tuple[bytes, int, str]] = {}  # hash → (message, last run that used it, fragment)
        self._run_number = 0  # runs of the script that have begun
        self._run_count = 0  # runs of the script that have ended
        self._oldest = 2  # runs for which an unused message is kept; the server sends the number
        self._page_hash = self._main_hash = ""
        self.session_id = ""
        # pages of the navigation, address → hash; "" is the page that the app opens with
        self.pages: dict[str, str] = {}
        self._run_fragments: Sequence[str] = ()
        self._socket: ClientConnection | None = None

    async def __aenter__(self) -> BrowserSession:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def open(self, page: str = "", address: Mapping[str, str | Sequence[str]] | None = None) -> Run:
        """Open the app at ``/page?address`` in a new tab; after ``close``, return to the same session."""
        start = time.perf_counter()
        token = await asyncio.to_thread(_xsrf_token, self.base)
        self._socket = await connect(
            f"{self.base.replace('http', 'ws', 1)}/_stcore/stream",
            subprotocols=["streamlit", token or "PLACEHOLDER_AUTH_TOKEN", *filter(None, [self.session_id])],
            origin=self.base,
            additional_headers={"Cookie": f"{XSRF_COOKIE}={token}"} if token else {},
            max_size=None,
            ping_interval=None,
        )
        self.query = urlencode(address or {}, doseq=True)
        run = await self._run(ClientState(page_name=page))
        run.seconds = time.perf_counter() - start
        return run

    async def close(self) -> None:
        """Close the tab."""
        if self._socket is not None:
            await self._socket.close()
            self._socket = None

    async def rerun(self) -> Run:
        """Run the page again with nothing changed."""
        return await self._run(ClientState(page_script_hash=self._page_hash))

    async def go_to(self, page: str) -> Run:
        """Click on a page in the navigation; the browser then clears the address."""
        if page not in self.pages:
            raise KeyError(f"the navigation has no page {page!r}; it has {', '.join(self.pages)}")
        self.query = ""
        kept = {widget_states.widget_id(s.element) for s in self.screen.values() if s.script_hash == self._main_hash}
        self._states = {id: state for id, state in self._states.items() if id in kept}
        return await self._run(ClientState(page_script_hash=self.pages[page]))

    async def type_into(self, key: str, text: str) -> Run:
        """Type into the text area with that key, and leave it."""
        shown = self.find(key)
        id = widget_states.widget_id(shown.element)
        self._states[id] = WidgetState(id=id, string_value=text)
        return await self._run(ClientState(page_script_hash=self._page_hash, fragment_id=shown.fragment_id))

    async def click(self, key: str) -> Run:
        """Click on the button with that key."""
        shown = self.find(key)
        return await self._trigger(shown, WidgetState(id=widget_states.widget_id(shown.element), trigger_value=True))

    async def event(self, key: str, event: str, value: object) -> Run:
        """Let the component with that key report an event, as after a click or a key press."""
        shown = self.find(key)
        id = widget_states.widget_id(shown.element)
        return await self._trigger(shown, widget_states.event_state(id, event, value))

    def find(self, key: str) -> Shown:
        """Return the widget or component on the screen with this key.

        Raises:
            KeyError: If there is none.
        """
        for shown in self.screen.values():
            if widget_states.widget_id(shown.element).endswith(f"-{key}"):
                return shown
        raise KeyError(f"there is no widget with the key {key!r} on the screen")

    def state(self, shown: Shown) -> WidgetState | None:
        """Return the value of a widget on the screen; ``None`` if it has none."""
        return self._states.get(widget_states.widget_id(shown.element))

    async def _trigger(self, shown: Shown, state: WidgetState) -> Run:
        """Send a value that the server forgets after the run."""
        client_state = ClientState(page_script_hash=self._page_hash, fragment_id=shown.fragment_id)
        client_state.widget_states.widgets.append(state)
        return await self._run(client_state)

    async def _run(self, state: ClientState) -> Run:
        """Send the visitor's action with the state of the page, and read until the script has finished."""
        state.query_string = self.query
        state.widget_states.widgets.extend(self._states.values())
        state.cached_message_hashes.extend(self._cache)
        state.context_info.url = f"{self.base}/{state.page_name}"
        state.context_info.timezone = "UTC"
        state.context_info.locale = "en-US"
        run, begun = Run(), False
        start = time.perf_counter()
        await self._socket.send(BackMsg(rerun_script=state).SerializeToString())
        async with asyncio.timeout(PATIENCE):
            while True:
                message = self._read(await self._socket.recv(), run)
                kind = message.WhichOneof("type")
                begun = begun or kind == "new_session"
                over = kind == "script_finished" and message.script_finished != ForwardMsg.FINISHED_EARLY_FOR_RERUN
                if begun and over:
                    break
        run.seconds = time.perf_counter() - start
        self._forget()
        return run

    def _read(self, data: bytes, run: Run) -> ForwardMsg:
        message = ForwardMsg.FromString(data)
        kind = message.WhichOneof("type")
        if kind == "ref_hash":
            whole, _, fragment = self._cache[message.ref_hash]
            self._cache[message.ref_hash] = whole, self._run_count, fragment
            known = ForwardMsg.FromString(whole)
            known.metadata.CopyFrom(message.metadata)
            message, kind = known, known.WhichOneof("type")
        elif message.metadata.cacheable and message.hash not in self._cache:
            self._cache[message.hash] = data, self._run_count, message.delta.fragment_id
        run.received.append(message)
        run.n_bytes += len(data)
        if kind == "delta":
            self._draw(message)
        elif kind == "new_session":
            new = message.new_session
            self._page_hash, self._main_hash = new.page_script_hash, new.main_script_hash
            self.session_id = new.initialize.session_id or self.session_id
            self._oldest = new.config.max_cached_message_age
            self._run_fragments = tuple(message.metadata.run.fragment_ids)
            self._run_number += 1
        elif kind == "navigation":
            self.pages = {page.url_pathname: page.page_script_hash for page in message.navigation.app_pages}
            self._page_hash = message.navigation.page_script_hash or self._page_hash
        elif kind == "page_info_changed":
            self.query = message.page_info_changed.query_string.removeprefix("?")
        return message

    def _draw(self, message: ForwardMsg) -> None:
        """Put an element on the screen, with the server's value if it is new or set."""
        place = tuple(message.metadata.delta_path)
        if message.delta.WhichOneof("type") != "new_element":
            if message.delta.WhichOneof("type") == "add_block":
                self.screen.pop(place, None)
            return
        element = message.delta.new_element
        self.screen[place] = Shown(
            element, message.metadata.active_script_hash, message.delta.fragment_id, self._run_number
        )
        id = widget_states.widget_id(element)
        if id and (id not in self._states or widget_states.is_set(element)):
            state = widget_states.shown_state(element)
            if state is not None:
                self._states[id] = state

    def _forget(self) -> None:
        """Drop what the run has not drawn again, widgets in it, and messages without recent use."""
        fragments = self._run_fragments
        for place, shown in list(self.screen.items()):
            if shown.run != self._run_number and (not fragments or shown.fragment_id in fragments):
                del self.screen[place]
        alive = {widget_states.widget_id(shown.element) for shown in self.screen.values()}
        self._states = {id: state for id, state in self._states.items() if id in alive}
        self._run_count += 1
        for hash, (_, used, fragment) in list(self._cache.items()):
            if (not fragments or fragment in fragments) and self._run_count - used > self._oldest:
                del self._cache[hash]


def _xsrf_token(base: str) -> str:
    """Return the token that the page gets as a cookie before it opens its websocket; "" if none is needed."""
    with urllib.request.urlopen(f"{base}/_stcore/health", timeout=30) as answer:
        for cookie in answer.headers.get_all("Set-Cookie") or ():
            name, _, rest = cookie.partition("=")
            if name == XSRF_COOKIE:
                return rest.split(";")[0]
    return ""
