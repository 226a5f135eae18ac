"""The address of the page, ``?checkpoint=…&layer=1``, which is read and written only here.

It is a copy of the page's state (``page_state``) and is written once per run, after the page has been drawn, because
every message to the browser becomes an entry in its history. A fragment, which runs without its page, writes at once.

When a reader opens another page, Streamlit makes two entries if the parameters differ: the old page with the new
parameters, then the new page, when React draws: in a busy browser the final address arrives before that. Therefore the
new address is sent before the navigation, with the name of the page as the parameter ``OPENING``. On that message, and
on no other, ``frame.js`` switches to the page, which makes the only entry; the final address replaces it.
"""

from collections.abc import Mapping, Sequence
from typing import NoReturn

import streamlit as st

from ui.server.streamlit_private import StreamlitPage

LONGEST = 4000  # characters; browsers and chat programs cut or refuse much longer addresses
OPENING = "opening"  # also in frame.js
PAGE = "page"  # a page by its name, as the web page's addresses have it

Parameters = Mapping[str, Sequence[str]]


def parameters() -> dict[str, list[str]]:
    """Return all parameters of the browser's address."""
    found = {name: st.query_params.get_all(name) for name in st.query_params if name != OPENING}
    return {name: values for name, values in found.items() if values}


def value(name: str, default: str = "") -> str:
    """Return the last value of a parameter."""
    return (st.query_params.get_all(name) or [default])[-1]


def is_opening() -> bool:
    """Return whether the app itself opens the page, so that the session is authoritative."""
    return OPENING in st.query_params


def write(wanted: Parameters, *, opening: str = "") -> None:
    """Set the address to exactly ``wanted``, in one message, if it differs; long values are left out.

    ``opening`` is the name of the page if it is only being opened.
    """
    short = without_long(wanted)
    if parameters() == short:
        short = parameters()  # in the order of the address
    if opening:
        short[OPENING] = [opening]
    there = {name: st.query_params.get_all(name) for name in st.query_params}
    if {name: values for name, values in there.items() if values} != short:
        st.query_params.from_dict(short)


def without_long(wanted: Parameters) -> dict[str, list[str]]:
    """Return what ``write`` writes: the parameters that have values and are not too long."""
    return {name: [*values] for name, values in wanted.items() if values and sum(map(len, values)) <= LONGEST}


def open_page(name: str, page: StreamlitPage) -> NoReturn:
    """Leave this page for another; its address follows from the session."""
    st.switch_page(page, query_params={OPENING: name})
