"""What the server does not answer, and what every answer says to the browser about other servers: it may ask none.

Who names another host than the server has is refused: otherwise a page of a stranger whose name leads to 127.0.0.1
could talk to the server of whoever reads that page. A public server takes no files and serves no metrics.
``ui/server/sent_files.py`` bounds how much another one takes, under ``streamlit run``, too.

Even a text that got by as markup could then not make a visitor's browser fetch a picture. ``streamlit run`` cannot send
such headers; a proxy in front of it can, with the line of ``deploy/nginx.conf``.
"""

from collections.abc import Mapping

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from streamlit import get_option

from ui.server.limits import public
from ui.server.streamlit_private import names_our_host

# Streamlit sets styles in the page and components are scripts of it; Vega compiles its formulas.
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


_FILES, _METRICS = "/_stcore/upload_file/", "/_stcore/metrics"
# A browser that opens a page by its address asks first whether the app lies below it (/heads/_stcore/health). The no
# must be no error (4xx), or it stands in red in the console of everybody who looks; a 300 without a place is none.
_ASKED_FIRST = ("/_stcore/health", "/_stcore/host-config")


class Guard:
    """ASGI middleware: ``HEADERS`` on every answer of ``app``, and no answer to what is refused."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        refused = _refused(scope)
        if refused is None:
            await self.app(scope, receive, with_headers if scope["type"] == "http" else send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
        else:
            await refused(scope, receive, with_headers)


def _refused(scope: Scope) -> PlainTextResponse | None:
    """What is answered in the place of the app, if anything."""
    if scope["type"] not in ("http", "websocket"):
        return None
    base = get_option("server.baseUrlPath").strip("/")
    # A probe of Kubernetes names the pod by its address, which nobody knows beforehand. The answer tells nothing.
    is_probe = scope["type"] == "http" and scope["path"] == f"/{base}/_stcore/health".replace("//", "/")
    if not is_probe and not names_our_host(Headers(scope=scope).get("host")):
        return PlainTextResponse("This server has another name, see GLASSFORMER_HOSTS in docs/settings.md.", 421)
    if scope["path"].endswith(_ASKED_FIRST) and scope["path"].rpartition("/_stcore/")[0].strip("/") != base:
        return PlainTextResponse("This server's pages have no servers of their own.", 300)
    if public() and _FILES in scope["path"]:
        return PlainTextResponse("This server is public: it takes no files.", 403)
    if public() and scope["path"].rstrip("/").endswith(_METRICS):
        return PlainTextResponse("Not Found", 404)
    return None
