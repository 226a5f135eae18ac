"""A page of another site that embeds this app in a frame, such as a Space of Hugging Face.

The reader sees that page's address and not ours, so it must contain the view: ``frame.js`` sends the view there
whenever it changes, and the outer page passes its own query to the app when it is opened. It does not know our paths;
so the name of the page becomes a parameter.
"""

import os
from collections.abc import Mapping, Sequence
from urllib.parse import urlsplit

from ui.server.settings import settings

PAGE = "page"


def outer_page() -> str:
    """Return the address of that page; "" if there is none.

    It is ``GLASSFORMER_OUTER_PAGE``, or that of the Space that this app runs in.

    Raises:
        ValueError: If it is not an address.
    """
    named = settings().outer_page
    space = os.environ.get("SPACE_ID", "").strip()  # owner/name, set by Hugging Face
    return named or (f"https://huggingface.co/spaces/{space}" if space else "")


def outer_origin() -> str:
    """Return the origin of that page for ``postMessage``; no other site receives the view."""
    parts = urlsplit(outer_page())
    return f"{parts.scheme}://{parts.netloc}" if parts.netloc else ""


def seen_address(url: str, parameters: Mapping[str, Sequence[str]]) -> tuple[str, Mapping[str, Sequence[str]]]:
    """Return the address and parameters of a page for other people: unchanged, or on the outer page."""
    if not (outer := outer_page()):
        return url, parameters
    name = urlsplit(url).path.rstrip("/").rpartition("/")[2]
    return outer, {PAGE: [name], **parameters} if name else parameters
