"""The WebSocket of the app, compressed with a window that reaches back over the whole last run of a page.

A page that runs again sends mostly what it sent the time before, some 20 KB in a hundred small messages. uvicorn's own
compression remembers the last 4 KB and halves that; with 32 KB, the most that the protocol allows, little is left but
what has changed. It costs 150 KB of memory for each open page and some milliseconds of processor time for each run.
"""

from typing import Any

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.extensions.permessage_deflate import ServerPerMessageDeflateFactory

# From the browser come clicks of about 1 KB, for which the small window does.
WHOLE_RUN = ServerPerMessageDeflateFactory(
    server_max_window_bits=15, client_max_window_bits=12, compress_settings={"memLevel": 5}
)


class RememberingWebSocket(WebSocketsSansIOProtocol):
    """uvicorn's WebSocket (``uvicorn.run(…, ws=RememberingWebSocket)``), with the widest window there is."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.conn.available_extensions = [WHOLE_RUN]
