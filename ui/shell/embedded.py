"""One figure of a page without its frame, for embedding in other pages: ``?embed=true``."""

from html import escape
from pathlib import Path
from urllib.parse import urlencode

import streamlit as st

from ui.shell.events import component, measure, nothing

_height = component("figure_height", Path(__file__).with_name("figure_height.js"))
_STYLE = Path(__file__).with_suffix(".css")
_MAX_PIXELS = 100_000
MARGINS = 16  # pixels above and below the figure together


def is_embedded() -> bool:
    """Return whether the address contains ``embed=true``, a parameter that ``st.query_params`` hides."""
    return bool(st.context.is_embedded)


def style_for_a_frame() -> None:
    """Add the style sheet if the page is embedded; once per run."""
    if is_embedded():
        st.html(_STYLE)


def heights() -> tuple[int, int]:
    """Return the heights of the page's first figure and of the window in pixels, in this reader's browser.

    The first is 0 if the page has no figure, or until it is known.
    """
    seen = _height(key="figure height", on_seen_change=nothing).get("seen")
    if not isinstance(seen, dict):
        return 0, 0
    figure, window = (measure(seen.get(name), 0, least=0, most=_MAX_PIXELS) for name in ("figure", "window"))
    return int(figure), int(window)


def iframe(link: str, *, title: str, figure: int, window: int) -> str:
    """Return the HTML that shows the first figure of the address ``link`` in another page.

    ``figure`` and ``window`` are its ``heights()``. A map is as high as the window allows, so the height of the frame
    does not define it (``charts/canvas/source/toolkit/theme.js``).
    """
    address = f"{link}&{urlencode({'embed': 'true', 'window': window})}"
    return (
        f'<iframe src="{escape(address)}" title="{escape(title)}" width="100%" height="{figure + MARGINS}" '
        'style="border:0" loading="lazy"></iframe>'
    )
