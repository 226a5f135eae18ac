"""One figure of a page without its frame, for somebody else's page: ``?embed=true``, Streamlit's own convention."""

from html import escape
from pathlib import Path
from urllib.parse import urlencode

import streamlit as st

from ui.shell.events import component, measure

_height = component("figure_height", Path(__file__).with_name("figure_height.js"))
_STYLE = Path(__file__).with_suffix(".css")
_MAX_PIXELS = 100_000
MARGINS = 16  # pixels above and below the figure together


def embedded() -> bool:
    """Whether the address says ``embed=true``. Streamlit keeps that parameter from ``st.query_params``."""
    return bool(st.context.is_embedded)


def style_for_a_frame() -> None:
    """The style sheet, while the page stands in another one; once per run."""
    if embedded():
        st.html(_STYLE)


def heights() -> tuple[int, int]:
    """Of the page's first figure as this reader sees it, and of the window, in pixels; the first is 0 where the page
    has no figure, or until it is known."""
    seen = _height(key="figure height", on_seen_change=_nothing).get("seen")
    if not isinstance(seen, dict):
        return 0, 0
    figure, window = (measure(seen.get(name), 0, least=0, most=_MAX_PIXELS) for name in ("figure", "window"))
    return int(figure), int(window)


def _nothing() -> None:
    """Streamlit reports a state only if it has a callback; the returned value is all that is needed."""


def iframe(link: str, *, title: str, figure: int, window: int) -> str:
    """The line of HTML that shows the first figure behind ``link``, an address with parameters, in another page.

    ``figure``, ``window``: their ``heights()``. A map is as high as the window has room for, and that of the frame
    tells nothing about it (``charts/canvas/source/toolkit/theme.js``).
    """
    address = f"{link}&{urlencode({'embed': 'true', 'window': window})}"
    return (
        f'<iframe src="{escape(address)}" title="{escape(title)}" width="100%" height="{figure + MARGINS}" '
        'style="border:0" loading="lazy"></iframe>'
    )
