"""What one page keeps in the session beside the focus, and in the address too: a copied address brings it along.

Like the focus, the session holds the truth and the address is its copy. Streamlit empties the address on a change of
page; a reader who comes back to the page finds it again.
"""

import re
from collections.abc import Sequence
from typing import Any

import streamlit as st

from ui.shell import address

_NUMBER = re.compile(r"-?[0-9]{1,9}(\.[0-9]{1,9})?", re.ASCII)
# For a widget: Streamlit keeps its value over a change of page, and in the address, too, by its key.
IN_SESSION: dict[str, Any] = {"persist_state": "session"}
IN_ADDRESS: dict[str, Any] = {"bind": "query-params", **IN_SESSION}


def number_in_address(key: str) -> None:
    """Before a number's widget is drawn: an address with more digits than a number can have begins at its default.

    Streamlit reads such a text as infinity and then fails on it.
    """
    if key not in st.session_state and address.values(key) and not _NUMBER.fullmatch(address.value(key)):
        address.write(key, ())
        address.send()
        st.rerun()


def belongs_to(key: str, owner: object, *, default: object) -> None:
    """Before a widget is drawn whose value only makes sense for ``owner``, a sentence, say: another one begins at
    ``default`` again. What the address says when it is opened is for the ``owner`` that it opens."""
    of = f"{key}: of"
    if st.session_state.get(of, owner) != owner:
        st.session_state[key] = default
    st.session_state[of] = owner


def preset(key: str, value: object) -> None:
    """Set a widget before it is drawn, whatever its value belonged to."""
    st.session_state[key] = value
    st.session_state.pop(f"{key}: of", None)


def offer(parameter: str, values: Sequence[str]) -> None:
    """As if an address with these values were opened: the page that keeps them begins anew when it is next drawn."""
    st.session_state[f"{parameter}: offered"] = tuple(values)


def begins_anew(parameter: str) -> bool:
    """Whether somebody has offered values since they were last ``asked`` for."""
    return f"{parameter}: offered" in st.session_state


def asked(parameter: str) -> tuple[str, ...]:
    """What was offered, else what the address holds under this name: at the first run of a session, what somebody
    copied."""
    offered = st.session_state.pop(f"{parameter}: offered", None)
    return tuple(address.values(parameter)) if offered is None else offered
