"""The WebSocket of the app, compressed with a window that spans the last run of a page.

A page that runs again sends mostly the same as before, some 20 KB in a hundred small messages. uvicorn's own
compression remembers the last 4 KB and halves that; with 32 KB, the maximum of the protocol, little more than the
changes remains. It costs 150 KB of memory per open page and some milliseconds of processor time per run.
"""

from typing import Any

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.extensions.permessage_deflate import ServerPerMessageDeflateFactory

# The browser sends clicks of about 1 KB, for which the small window is enough.
WHOLE_RUN = ServerPerMessageDeflateFactory(
    server_max_window_bits=15, client_max_window_bits=12, compress_settings={"memLevel": 5}
)


class RememberingWebSocket(WebSocketsSansIOProtocol):
    """uvicorn's WebSocket (``uvicorn.run(…, ws=RememberingWebSocket)``) with the largest possible window."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.conn.available_extensions = [WHOLE_RUN]
