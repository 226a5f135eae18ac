"""Helpers of tests: event loops beside the browser, and ports that no other process takes."""

from __future__ import annotations

import ast
import asyncio
import socket
from itertools import count
from pathlib import Path

import pytest

from tests.harness import app_server
from tests.own_thread import in_own_thread

TESTS = Path(__file__).parent


def test_a_loop_begins_beside_one_that_runs_and_what_is_raised_there_reaches_the_test() -> None:
    async def answer(value: int) -> int:
        return 1 // value

    async def beside() -> int:
        return in_own_thread(asyncio.run, answer(1))

    assert in_own_thread(asyncio.run, beside()) == 1
    with pytest.raises(ZeroDivisionError):
        in_own_thread(asyncio.run, answer(0))


def test_no_test_begins_a_loop_in_its_own_thread() -> None:
    found = [
        f"{path.relative_to(TESTS)}:{node.lineno}"
        for path in sorted(TESTS.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "asyncio.run"
    ]
    assert not found, f"asyncio.run fails after a test in the browser; call it with in_own_thread in {', '.join(found)}"


def test_each_call_gives_another_port_below_those_of_outgoing_connections() -> None:
    ports = [app_server.free_port() for _ in range(5)]
    assert len(set(ports)) == 5 and max(ports) < 32_768


def test_a_port_that_is_in_use_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", app_server.free_port())) as taken:
        port = taken.getsockname()[1]
        monkeypatch.setattr(app_server, "_PORTS", count(port))
        assert app_server.free_port() > port
