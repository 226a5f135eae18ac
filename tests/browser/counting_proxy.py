"""A proxy that counts the bytes of WebSockets on the wire, compressed or not.

Chromium and Playwright show WebSocket messages only decompressed. The proxy forwards everything unchanged and counts
what the server sends after the upgrade to WebSocket: payloads and frame headers.
"""

from __future__ import annotations

import socket
import threading
from contextlib import suppress

_UPGRADED = b"HTTP/1.1 101"


class CountingProxy:
    """A proxy, ``with CountingProxy(host, port) as wire``, whose ``wire.received`` counts WebSocket bytes."""

    def __init__(self, host: str, port: int) -> None:
        self._server = host, port
        self._lock = threading.Lock()
        self._open: list[socket.socket] = []
        self.received = 0

    def __enter__(self) -> CountingProxy:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.base = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def forget(self) -> None:
        """Reset the count."""
        with self._lock:
            self.received = 0

    def lead_to(self, port: int) -> None:
        """Close all connections and forward new ones to another server, as if a replica were lost."""
        self._server = self._server[0], port
        _close(*self._open)

    def _accept(self) -> None:
        while True:
            try:
                browser, _ = self._listener.accept()
            except OSError:  # closed
                return
            threading.Thread(target=self._connect, args=(browser,), daemon=True).start()

    def _connect(self, browser: socket.socket) -> None:
        with suppress(OSError):  # browsers open connections that they abandon at once
            server = socket.create_connection(self._server)
            self._open += browser, server
            for end in (browser, server):
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=self._pass_back, args=(server, browser), daemon=True).start()
            self._pass_on(browser, server)

    def _pass_on(self, browser: socket.socket, server: socket.socket) -> None:
        with suppress(OSError):
            while data := browser.recv(65536):
                server.sendall(data)
        _close(browser, server)

    def _pass_back(self, server: socket.socket, browser: socket.socket) -> None:
        counts = False
        with suppress(OSError):
            while data := server.recv(65536):
                if counts:
                    with self._lock:
                        self.received += len(data)
                elif data.startswith(_UPGRADED):
                    counts = True
                    with self._lock:
                        self.received += len(data.partition(b"\r\n\r\n")[2])
                browser.sendall(data)
        _close(server, browser)


def _close(*ends: socket.socket) -> None:
    for end in ends:
        with suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
