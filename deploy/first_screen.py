"""A title in the first bytes of a page, so that the window is not blank while scripts load.

Streamlit's ``index.html`` is empty until some megabytes of scripts have been read and the first page has been computed.
The title stands over it until the page has its own.
"""

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_ROOT = b'<div id="root"></div>'
# The colours are those of .streamlit/config.toml. The script looks for the head that every page has (ui/shell/page.py);
# a server that answers nothing leaves the title there for a minute.
_TITLE = b"""<div id="first-screen" role="status">
  <style>
    #first-screen { position: fixed; inset: 0; display: grid; place-content: center; text-align: center; gap: 0.4rem;
      font-family: "Source Sans", sans-serif; background: #ffffff; color: #1a2230; z-index: 1; }
    #first-screen strong { font-size: 2rem; }
    @media (prefers-color-scheme: dark) { #first-screen { background: #12161d; color: #e8ecf2; } }
  </style>
  <strong>Glassformer</strong><span>Follow a sentence through a Transformer.</span>
</div>
<script>
  {
    const first = document.getElementById("first-screen");
    const look = new MutationObserver(() => {
      if (document.querySelector("[data-testid=stMainBlockContainer] :is(h1, [data-testid=stAlert])")) end();
    });
    const end = () => (look.disconnect(), first.remove());
    look.observe(document.getElementById("root"), { childList: true, subtree: true });
    setTimeout(end, 60000);
  }
</script>"""


class FirstScreen:
    """ASGI middleware that adds the title to Streamlit's page, under all of its addresses."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one connection; a browser that opens a page asks for HTML, and gets it uncompressed."""
        if (
            scope["type"] != "http"
            or scope["method"] != "GET"
            or "text/html" not in Headers(scope=scope).get("accept", "")
        ):
            await self.app(scope, receive, send)
            return
        plain = {**scope, "headers": [pair for pair in scope["headers"] if pair[0] != b"accept-encoding"]}
        begin: Message | None = None
        body = b""

        async def send_with_title(message: Message) -> None:
            nonlocal begin, body
            if message["type"] == "http.response.start" and _is_page(message):
                begin = message  # the length of the new page is not known yet
            elif begin is None or message["type"] != "http.response.body":
                await send(message)
            else:
                body += message.get("body", b"")
                if not message.get("more_body"):
                    page = body.replace(_ROOT, _ROOT + _TITLE, 1)
                    headers = MutableHeaders(raw=begin["headers"])
                    headers["content-length"] = str(len(page))
                    for name in ("etag", "last-modified"):  # the headers of the file
                        del headers[name]
                    await send(begin)
                    await send({**message, "body": page})

        await self.app(plain, receive, send_with_title)


def _is_page(message: Message) -> bool:
    kind = Headers(raw=message["headers"]).get("content-type", "")
    return message["status"] == 200 and kind.startswith("text/html")
