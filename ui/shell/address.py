"""The address of the page, ``?checkpoint=…&layer=1``: read and written here and nowhere else.

A run of the script writes it once, when the page has been drawn: until then what is to change is collected, and read as
if it stood there already. Every message to the browser would be an entry in its history. A fragment, which runs without
its page, writes at once. Streamlit's own widgets keep theirs themselves (``page_state.IN_ADDRESS``).
"""

from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from typing import NoReturn

import streamlit as st

from ui.server.streamlit_private import StreamlitPage, runs_a_fragment

LONGEST = 4000  # characters; browsers and chat programs cut or refuse much longer addresses

_collected: ContextVar[dict[str, list[str]] | None] = ContextVar("what this run will write", default=None)


def parameters() -> dict[str, list[str]]:
    """Everything that the address says."""
    written = {name: st.query_params.get_all(name) for name in st.query_params} | (_collected.get() or {})
    return {name: values for name, values in written.items() if values}


def values(name: str) -> list[str]:
    """What the address says under this name; nothing where it does not."""
    collected = _collected.get() or {}
    return collected[name] if name in collected else st.query_params.get_all(name)


def value(name: str, default: str = "") -> str:
    """The last of the ``values``."""
    return (values(name) or [default])[-1]


def collect() -> None:
    """From now on changes wait for ``send``."""
    _collected.set({})


def write(name: str, values_: Sequence[str]) -> None:
    """Only where it differs; nothing takes the name out, and so does what is far too long for an address."""
    wanted = list(values_) if sum(map(len, values_)) <= LONGEST else []
    if values(name) == wanted:
        return
    collected = _collected.get()
    if collected is None or runs_a_fragment():
        st.query_params.update({name: wanted})
    else:
        collected[name] = wanted


def send() -> None:
    """Write what was collected, in one message, if anything."""
    collected = _collected.get() or {}
    _collected.set(None)
    if changed := {name: wanted for name, wanted in collected.items() if st.query_params.get_all(name) != wanted}:
        st.query_params.update(changed)


def open_page(page: StreamlitPage, address: Mapping[str, str | Sequence[str]]) -> NoReturn:
    """Leave this page for another one under that address."""
    st.switch_page(page, query_params=address)
