"""The counter of WebSocket bytes counts correctly; tests/browser/test_serve.py uses it."""

from __future__ import annotations

import socket
import threading

import pytest

from tests.browser.counting_proxy import CountingProxy

pytestmark = pytest.mark.browser


def test_the_wire_counts_what_comes_after_the_upgrade_and_nothing_else() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            for said in (b"HTTP/1.1 200 OK\r\n\r\nplain", b"HTTP/1.1 101 Switching\r\n\r\n12345"):
                connection, _ = server.accept()
                connection.recv(100)
                connection.sendall(said)
                if connection.recv(100):
                    connection.sendall(b"678")
                connection.close()

        threading.Thread(target=answer, daemon=True).start()
        with CountingProxy(*server.getsockname()) as wire:
            host, port = wire.base.removeprefix("http://").split(":")
            for counted in (0, 8):
                with socket.create_connection((host, int(port))) as browser:
                    browser.sendall(b"GET / HTTP/1.1\r\n\r\n")
                    browser.recv(100)
                    browser.sendall(b"more")
                    assert browser.recv(100) == b"678"
                assert wire.received == counted
            wire.forget()
            assert wire.received == 0
