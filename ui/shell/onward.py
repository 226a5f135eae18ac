"""What a page says of its place among the others: the links to the ones before and after, and the laboratory's sign."""

import streamlit as st

from ui.shell.navigation import LABORATORY_SIGN, beside, is_in_laboratory, pages
from ui.words.texts import common

_ARROW = {"icon": ":material/arrow_forward:", "icon_position": "right"}


def place_among_pages(name: str, *, shown: bool) -> None:
    """Near the title: the sign of the laboratory, and an arrow to the next page, whose text only a screen reader reads;
    it is also the tooltip."""
    if is_in_laboratory(name):
        st.badge(common("navigation.laboratory"), icon=LABORATORY_SIGN, color="gray", width="content")
    _, after = beside(name)
    if shown and after:
        with st.container(width="content", key="next page"):
            _link(after, "after", help=common("navigation.after", page=pages()[after].title), **_ARROW)


def links_onward(name: str) -> None:
    """To the page before and the one after, with the focus, where somebody has read to the end of a page."""
    before, after = beside(name)
    with st.container(horizontal=True, horizontal_alignment="distribute", key="onward"):
        with st.container(width="content"):
            if before:
                _link(before, "before", icon=":material/arrow_back:")
        with st.container(width="content"):
            if after:
                _link(after, "after", **_ARROW)


def _link(name: str, text: str, **more: str) -> None:
    page = pages()[name]
    st.page_link(page, label=common(f"navigation.{text}", page=page.title), **more)
