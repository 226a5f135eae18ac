"""One figure of a page without its frame, for somebody else's page: ``?embed=true``, Streamlit's own convention."""

from html import escape
from pathlib import Path
from urllib.parse import urlencode

import streamlit as st

_STYLE = Path(__file__).with_suffix(".css")
HEIGHT = 600  # pixels; whoever takes the line may write another number


def embedded() -> bool:
    """Whether the address says ``embed=true``. Streamlit keeps that parameter from ``st.query_params``."""
    return bool(st.context.is_embedded)


def style_for_a_frame() -> None:
    """The style sheet, while the page stands in another one; once per run."""
    if embedded():
        st.html(_STYLE)


def iframe(link: str, *, title: str) -> str:
    """The line of HTML that shows the first figure behind ``link``, an address with parameters, in another page."""
    address = f"{link}&{urlencode({'embed': 'true'})}"
    return (
        f'<iframe src="{escape(address)}" title="{escape(title)}" width="100%" height="{HEIGHT}" '
        'style="border:0" loading="lazy"></iframe>'
    )
