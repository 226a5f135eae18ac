"""The entry point for a class: this machine only, compressed files, sessions that wait."""

from __future__ import annotations

import asyncio
import gzip
import re
import socket
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator

import pytest
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.WidgetStates_pb2 import WidgetState

from tests.harness.app_server import AppServer
from tests.harness.browser_session import BrowserSession
from tests.own_thread import in_own_thread

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def server() -> Iterator[AppServer]:
    with AppServer("deploy.serve", environment={"OMP_NUM_THREADS": "1", "GLASSFORMER_PUBLIC": "1"}) as server:
        yield server


IDS = ("x", "", "focus", "$$WEBUI-abc-None", "$$ID-abc-None", "$$ID-abc-sentence", "$$STREAMLIT_INTERNAL_KEY_x")
VALUES: dict[str, Callable[[WidgetState], object]] = {
    "a number": lambda widget: setattr(widget, "int_value", 3),
    "a text": lambda widget: setattr(widget, "string_value", "zzz"),
    "broken JSON": lambda widget: setattr(widget, "json_value", "{"),
    "a click": lambda widget: setattr(widget, "trigger_value", True),
    "numbers": lambda widget: widget.double_array_value.data.extend([1.0, 2.0, 3.0]),
    "bytes": lambda widget: setattr(widget, "bytes_value", b"x"),
    "nothing": lambda widget: None,
}


def test_forged_widgets_leave_the_page_and_the_log_as_they_are(server: AppServer) -> None:
    """What no page of this server can have sent as a widget's value is ignored, and is not in the log."""

    async def attack() -> None:
        async with BrowserSession(server.base) as session:
            await session.open("attention")
            for value in VALUES.values():
                message, forged = BackMsg(), {}
                for widget in (*IDS, *session._states):
                    message.rerun_script.widget_states.widgets.add(id=widget)  # after it, any other kind looks right
                    forged[widget] = message.rerun_script.widget_states.widgets.add(id=widget)
                    value(forged[widget])
                await session._socket.send(message.SerializeToString())
                for _ in range(2):
                    run = await session.rerun()
                    assert not run.errors, run.errors
                async with BrowserSession(server.base) as other:  # the server has drawn no widget of this session
                    other._states = forged
                    run = await other.open("attention")
                    assert not run.errors, run.errors

    in_own_thread(asyncio.run, attack())
    assert not [line for line in server.last_lines(1000) if "Error" in line or "Traceback" in line]


def fetch(server: AppServer, path: str, **headers: str) -> tuple[dict[str, str], bytes]:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    with urllib.request.urlopen(urllib.request.Request(server.base + path, headers=named), timeout=30) as answer:
        return {name.lower(): value for name, value in answer.headers.items()}, answer.read()


def test_it_answers_on_this_machine_only(server: AppServer) -> None:
    """The address in .streamlit/config.toml applies here as well."""
    assert fetch(server, "/_stcore/health")[1] == b"ok"
    with socket.socket() as other, pytest.raises(OSError):  # another address of this machine
        other.settimeout(5)
        other.connect(("127.0.0.2", server.port))


def test_scripts_come_compressed_and_are_kept_for_good(server: AppServer) -> None:
    path = "/" + re.search(r'src="\./(static/js/index\.[^"]+)"', fetch(server, "/")[1].decode()).group(1)
    headers, packed = fetch(server, path, Accept_Encoding="gzip, deflate, br")
    plain_headers, plain = fetch(server, path)
    assert headers["content-encoding"] == "gzip" and "content-encoding" not in plain_headers
    assert gzip.decompress(packed) == plain and len(packed) < len(plain) / 2
    for found in (headers, plain_headers):
        assert "immutable" in found["cache-control"] and "javascript" in found["content-type"]
    assert headers["vary"] == "Accept-Encoding"
    headers, part = fetch(server, path, Accept_Encoding="gzip", Range="bytes=0-99")  # Streamlit's business
    assert "content-encoding" not in headers and len(part) == 100
    with pytest.raises(urllib.error.HTTPError, match="400"):
        fetch(server, "/static/js/../../../../../etc/passwd.12345678.js", Accept_Encoding="gzip")


@pytest.mark.parametrize("path", ["{}", "{}/", "{}?families=session_events", "/{}"])
def test_a_public_server_shows_no_metrics(server: AppServer, path: str) -> None:
    with pytest.raises(urllib.error.HTTPError, match="40[04]"):
        fetch(server, path.format("/_stcore/metrics"))


def test_a_phone_that_sleeps_comes_back_to_its_session(server: AppServer) -> None:
    """The sentence is not in the address with which it returns: only the session knows it."""

    async def sleep_and_return() -> tuple[set[str], str]:
        async with BrowserSession(server.base) as phone:
            await phone.open("tokens")
            await phone.type_into("sentence", "One bird sings")
            ids = {phone.session_id}
            await phone.close()
            await asyncio.sleep(1)
            await phone.open("tokens")
            return ids | {phone.session_id}, phone.state(phone.find("sentence")).string_value

    ids, sentence = in_own_thread(asyncio.run, sleep_and_return())
    assert len(ids) == 1 and "" not in ids and sentence == "One bird sings"
