"""A drawing of the attention canvas as one HTML page that works offline: the script and the bytes are inside.

Token text is in the bytes, as base64, and is painted with ``fillText`` or set as ``textContent``: it never is markup.
The page's own policy lets nothing in or out: no host is asked for anything.
"""

import base64
import re
from html import escape

from charts.canvas.module import FOLDER, packed_module
from charts.toolkit.payload_bytes import unpack

_PLACE = re.compile(r"\{\{(\w+)\}\}")


def canvas_page(payload: bytes) -> str:
    """``payload``: the bytes of a drawing, as the functions of ``charts`` that end in ``_payload`` make them."""
    metadata, _ = unpack(payload)
    values = {
        "title": escape(metadata["title"]),
        "language": escape(metadata.get("language", "en")),
        "payload": base64.b64encode(payload).decode("ascii"),
        "script": base64.b64encode(packed_module()).decode("ascii"),
    }
    template = (FOLDER / "page.html").read_text(encoding="utf-8")
    return _PLACE.sub(lambda place: values[place[1]], template)
