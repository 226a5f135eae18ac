"""Requests that the server refuses, and headers that forbid the browser to contact other servers.

A request for another host than the server's is refused: otherwise a third-party page whose name resolves to 127.0.0.1
could talk to the reader's server. A public server accepts no files, serves no metrics and is driven by no program,
whatever Streamlit's settings are. ``ui/server/sent_files.py`` limits uploads on other servers, also under
``streamlit run``.

With the headers, even a text that was mistaken for markup could not make a visitor's browser fetch an image.
``streamlit run`` cannot send them; a proxy can, with the line in ``deploy/nginx.conf``.
"""

from collections.abc import Mapping

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from streamlit import get_option

from ui.server.settings import public
from ui.server.streamlit_private import names_our_host

# Streamlit sets styles in the page and components are scripts in it; Vega compiles its formulas.
CONTENT_SECURITY_POLICY = "; ".join(
    (
        "default-src 'self'",
        "script-src 'self' 'unsafe-inline' 'unsafe-eval' blob: data:",
        "style-src 'self' 'unsafe-inline'",
        "img-src 'self' data: blob:",
        "font-src 'self' data:",
        "media-src 'self' data: blob:",
        "connect-src 'self' data: blob:",
        "worker-src 'self' blob:",
        "frame-src 'self' data: blob:",
        "object-src 'none'",
        "base-uri 'self'",
        "form-action 'self'",
    )
)
HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
}


_FILES, _METRICS, _AGENT = "/_stcore/upload_file/", "/_stcore/metrics", "/_stcore/agent/"
# A browser that opens a page by its address first checks whether the app is below it (/heads/_stcore/health). The
# negative answer must not be an error (4xx), which would appear in red in the console; a 300 without a location is
# none.
_ASKED_FIRST = ("/_stcore/health", "/_stcore/host-config")


class Guard:
    """ASGI middleware that adds ``HEADERS`` to every response of ``app``, and refuses requests."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one connection."""

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        refused = _refusal(scope)
        if refused is None:
            await self.app(scope, receive, with_headers if scope["type"] == "http" else send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
        else:
            await refused(scope, receive, with_headers)


def _refusal(scope: Scope) -> PlainTextResponse | None:
    """Return the response to a refused request, or ``None``."""
    if scope["type"] not in ("http", "websocket"):
        return None
    base = get_option("server.baseUrlPath").strip("/")
    # A Kubernetes probe names the pod by its address, which is not known in advance. The response reveals nothing.
    is_probe = scope["type"] == "http" and scope["path"] == f"/{base}/_stcore/health".replace("//", "/")
    if not is_probe and not names_our_host(Headers(scope=scope).get("host")):
        return PlainTextResponse("This server has another name, see GLASSFORMER_HOSTS in docs/settings.md.", 421)
    if scope["path"].endswith(_ASKED_FIRST) and scope["path"].rpartition("/_stcore/")[0].strip("/") != base:
        return PlainTextResponse("This server's pages have no servers of their own.", 300)
    if public() and _FILES in scope["path"]:
        return PlainTextResponse("This server is public and accepts no files.", 403)
    if public() and (scope["path"].rstrip("/").endswith(_METRICS) or _AGENT in scope["path"]):
        return PlainTextResponse("Not Found", 404)
    return None
