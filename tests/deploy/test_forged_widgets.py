"""What no page of this server can have sent as a widget's value is ignored, and is not in the log."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.WidgetStates_pb2 import WidgetState

from tests.harness.app_server import AppServer
from tests.harness.browser_session import BrowserSession
from tests.own_thread import in_own_thread

pytestmark = pytest.mark.slow

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


def test_forged_widgets_leave_the_page_and_the_log_as_they_are() -> None:
    async def attack(server: AppServer) -> None:
        for value in VALUES.values():
            async with BrowserSession(server.base) as session:
                await session.open("attention")
                message = BackMsg()
                for widget in (*IDS, *session._states):
                    sent = message.rerun_script.widget_states.widgets.add(id=widget)
                    value(sent)
                await session._socket.send(message.SerializeToString())
                for _ in range(2):
                    run = await session.rerun()
                    assert not run.errors, run.errors

    with AppServer("deploy.serve") as server:
        in_own_thread(asyncio.run, attack(server))
        assert not [line for line in server.last_lines(1000) if "Error" in line or "Traceback" in line]
