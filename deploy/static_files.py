"""Streamlit's own scripts and styles, compressed once and kept.

Streamlit sends its static files uncompressed, because compressing them for every visitor costs more than it saves. They
never change while the server runs, so each is compressed once here. Their names contain a hash of their content, so a
browser may keep them forever.
"""

import gzip
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from threading import Lock

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

TYPES = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml", ".json": "application/json"}
FOREVER = "public, immutable, max-age=31536000"
_SMALLEST = 500  # bytes; smaller files gain nothing
_HASHED = re.compile(r"\.[\w-]{8}\.\w+$")  # index.DormvYxC.js
_one_at_a_time = Lock()


class CompressedStaticFiles:
    """ASGI middleware that serves ``<prefix>/static/…`` from ``folder``, compressed with gzip.

    Everything else is passed to ``app``: WebSockets, unknown names, names without a hash, requests for a part of a
    file, browsers without gzip.
    """

    def __init__(self, app: ASGIApp, *, folder: Path, prefix: str = "") -> None:
        self.app = app
        self.files = compressible(folder, prefix=prefix)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one connection."""
        path = self.files.get(scope["path"]) if scope["type"] == "http" else None
        if path is None or not _takes_gzip(scope):
            await self.app(scope, receive, send)
            return
        body = await run_in_threadpool(compress, path)
        headers = {"Content-Encoding": "gzip", "Vary": "Accept-Encoding", "Cache-Control": FOREVER}
        await Response(body, media_type=TYPES[path.suffix], headers=headers)(scope, receive, send)


def compressible(folder: Path, *, prefix: str = "") -> Mapping[str, Path]:
    """Return address → file; requests are looked up only here, so that no address leads out of the folder."""
    return {
        f"{prefix}/static/{path.relative_to(folder).as_posix()}": path
        for path in sorted(folder.rglob("*"))
        if path.suffix in TYPES and _HASHED.search(path.name) and path.stat().st_size >= _SMALLEST
    }


def compress(path: Path) -> bytes:
    """Return the file as gzip, compressed once even if several requests arrive at the same moment."""
    with _one_at_a_time:
        return _compress(path)


@cache
def _compress(path: Path) -> bytes:
    return gzip.compress(path.read_bytes(), mtime=0)


def compress_all(folder: Path) -> int:
    """Compress everything now, and return the number of bytes; Streamlit's 23 MB take about a second."""
    return sum(len(compress(path)) for path in compressible(folder).values())


def _takes_gzip(scope: Scope) -> bool:
    if scope["method"] not in ("GET", "HEAD"):
        return False
    headers = Headers(scope=scope)
    codings = headers.get("accept-encoding", "").lower().replace(" ", "").split(",")
    refused = {"gzip;q=0", "gzip;q=0.0", "gzip;q=0.00", "gzip;q=0.000"}
    return "range" not in headers and any(c.split(";")[0] == "gzip" and c not in refused for c in codings)
