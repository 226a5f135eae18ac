"""A document for paper: one HTML file made of parts, which needs no other file and contacts no host."""

import base64
import json
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path

from charts.canvas.module import packed_module
from charts.documents.document_parts import Part, join_html, markdown_html

_STYLE = Path(__file__).with_name("document.css")
# As in charts/canvas/page.html: no host is contacted, whatever was typed.
_POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:"
# Scripts are deflated to a quarter of their size (charts/canvas/source/document.js continues from here).
_START = """<script type="module">
const packed = Uint8Array.from(atob(document.getElementById("script").textContent), (c) => c.charCodeAt(0));
const inflated = new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate")));
const script = Object.assign(document.createElement("script"), { type: "module" });
script.textContent = `${await inflated.text()}\\nshowDocument();`;
document.head.append(script);
</script>"""


def document(
    title: str,
    parts: Sequence[Part],
    *,
    heading: str = "",
    kicker: str = "",
    lead: Sequence[Part] = (),
    language: str = "en",
    words: Mapping[str, str] | None = None,
) -> str:
    """Build the whole file from its parts.

    Args:
        title: Plain text.
        parts: The body.
        heading: The title as Markdown, if it uses any.
        kicker: Plain text above the heading.
        lead: Parts below the heading.
        language: Language of the texts, e.g. ``"fr"``.
        words: Words of the figures, from English to ``language``.
    """
    body = join_html(parts)
    above = f'<p class="kicker">{escape(kicker)}</p>' if kicker else ""
    page = [
        f'<!doctype html>\n<html lang="{escape(language)}">\n<head>\n<meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">',
        f"<title>{escape(title)}</title>",
        f"<style>\n{_STYLE.read_text(encoding='utf-8')}</style>\n</head>",
        '<body class="paper">',
        f"<header>{above}<h1>{markdown_html(heading) or escape(title)}</h1>{join_html(lead)}</header>",
        f"<main>\n{body}\n</main>",
        *_drawing_scripts(body, {"words": dict(words or {}), "language": language}),
        "</body>\n</html>\n",
    ]
    return "\n".join(page)


def _drawing_scripts(body: str, shared: Mapping[str, object]) -> list[str]:
    """Return the script of the figures, once, if there are any.

    Third-party text in ``body`` is escaped and cannot look like a figure.
    """
    if '<figure class="drawing">' not in body:
        return []
    data = (("shared", json.dumps(shared).encode("utf-8")), ("script", packed_module()))
    packed = [(name, base64.b64encode(content).decode("ascii")) for name, content in data]
    return [*(f'<script type="text/plain" id="{name}">{content}</script>' for name, content in packed), _START]
