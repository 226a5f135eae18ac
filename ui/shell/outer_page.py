"""The page of another site that shows this app in a frame, as a Space of Hugging Face does.

The reader sees that page's address and not ours, so it has to say the view: ``frame.js`` sends it there whenever it
changes, and the outer page hands its own query to the app when it is opened. It knows nothing of our paths; the name of
the page therefore becomes a parameter.
"""

import os
from collections.abc import Mapping, Sequence
from urllib.parse import urlsplit

from ui.server.settings import settings

PAGE = "page"


def outer_page() -> str:
    """The address of that page: ``GLASSFORMER_OUTER_PAGE``, or that of the Space this runs in; empty where there is
    none. Raises ``ValueError`` for what is no address."""
    named = settings().outer_page
    space = os.environ.get("SPACE_ID", "").strip()  # owner/name, set by Hugging Face
    return named or (f"https://huggingface.co/spaces/{space}" if space else "")


def outer_origin() -> str:
    """The site of that page, as ``postMessage`` names it: nobody else is told what a reader looks at."""
    parts = urlsplit(outer_page())
    return f"{parts.scheme}://{parts.netloc}" if parts.netloc else ""


def seen_address(url: str, parameters: Mapping[str, Sequence[str]]) -> tuple[str, Mapping[str, Sequence[str]]]:
    """Where somebody else finds the page ``url`` with these parameters: both as they are, or on the outer page."""
    if not (outer := outer_page()):
        return url, parameters
    name = urlsplit(url).path.rstrip("/").rpartition("/")[2]
    return outer, {PAGE: [name], **parameters} if name else parameters
