"""Servers of tests get ports that no other server and no connection takes before they have started."""

from __future__ import annotations

import socket
from itertools import count

import pytest

from tests.harness import app_server


def test_each_call_gives_another_port_below_those_of_outgoing_connections() -> None:
    ports = [app_server.free_port() for _ in range(5)]
    assert len(set(ports)) == 5 and max(ports) < 32_768


def test_a_port_that_is_in_use_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", app_server.free_port())) as taken:
        port = taken.getsockname()[1]
        monkeypatch.setattr(app_server, "_PORTS", count(port))
        assert app_server.free_port() > port
