"""A document for paper: one HTML file made of parts, which needs no other file and contacts no host."""

import base64
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from charts.canvas.module import packed_module
from charts.documents.document_parts import Part, join_html, template

_STYLE = Path(__file__).with_name("document.css")


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
    body, shared = join_html(parts), json.dumps({"words": dict(words or {}), "language": language})
    # Third-party text is escaped and cannot look like a figure.
    script = packed_module() if '<figure class="drawing">' in body else b""
    packed = (base64.b64encode(content).decode("ascii") for content in (shared.encode(), script))
    style = _STYLE.read_text(encoding="utf-8")
    return template("document")(title, heading, kicker, join_html(lead), body, language, style, *packed)
