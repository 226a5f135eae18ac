"""Streamlit's own scripts and styles, compressed once and kept.

Streamlit sends its static files uncompressed, because compressing them for every visitor costs more than it saves. They
never change while the server runs, so each is compressed once here. Their names contain a hash of their content, so a
browser may keep them forever.
"""

import asyncio
import gzip
import re
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

TYPES = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml", ".json": "application/json"}
_FOREVER = "public, immutable, max-age=31536000"
_SMALLEST = 500  # bytes; smaller files gain nothing
_HASHED = re.compile(r"\.[\w-]{8}\.\w+$")  # index.DormvYxC.js


class CompressedStaticFiles:
    """ASGI middleware that serves ``<prefix>/static/…`` from ``folder``, compressed with gzip.

    Everything else is passed to ``app``: WebSockets, unknown names, names without a hash, requests for a part of a
    file, browsers without gzip. The files are compressed in a thread, which takes about a second for Streamlit's 23 MB.
    """

    def __init__(self, app: ASGIApp, *, folder: Path, prefix: str = "") -> None:
        self.app = app
        self._files = ThreadPoolExecutor(1).submit(compressed_files, folder, prefix=prefix)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one connection."""
        body = None
        if scope["type"] == "http" and _takes_gzip(scope):
            body = (await asyncio.wrap_future(self._files)).get(scope["path"])
        if body is None:
            await self.app(scope, receive, send)
            return
        headers = {"Content-Encoding": "gzip", "Vary": "Accept-Encoding", "Cache-Control": _FOREVER}
        await Response(body, media_type=TYPES[Path(scope["path"]).suffix], headers=headers)(scope, receive, send)


def compressed_files(folder: Path, *, prefix: str = "") -> Mapping[str, bytes]:
    """Return address → gzip; requests are looked up only here, so that no address leads out of the folder."""
    return {
        f"{prefix}/static/{path.relative_to(folder).as_posix()}": gzip.compress(path.read_bytes(), mtime=0)
        for path in sorted(folder.rglob("*"))
        if path.suffix in TYPES and _HASHED.search(path.name) and path.stat().st_size >= _SMALLEST
    }


def _takes_gzip(scope: Scope) -> bool:
    if scope["method"] not in ("GET", "HEAD"):
        return False
    headers = Headers(scope=scope)
    codings = headers.get("accept-encoding", "").lower().replace(" ", "").split(",")
    refused = {"gzip;q=0", "gzip;q=0.0", "gzip;q=0.00", "gzip;q=0.000"}
    return "range" not in headers and any(c.split(";")[0] == "gzip" and c not in refused for c in codings)
