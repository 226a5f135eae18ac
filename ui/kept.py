"""What one page keeps in the session beside the focus, and in the address too: a copied address brings it along.

Like the focus, the session holds the truth and the address is its copy. Streamlit empties the address on a change of
page; whoever comes back to the page finds it there again.
"""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from ui.focus import LONGEST_IN_ADDRESS


def asked(parameter: str) -> tuple[str, ...]:
    """What the address holds under this name: at the first run of a session, what somebody copied."""
    return tuple(st.query_params.get_all(parameter))


def write(parameter: str, values: Sequence[str]) -> None:
    """Copy to the address, only where it differs; what is far too long for one is left out."""
    wanted = list(values) if sum(map(len, values)) <= LONGEST_IN_ADDRESS else []
    if st.query_params.get_all(parameter) == wanted:
        return
    if wanted:
        st.query_params[parameter] = wanted
    else:
        del st.query_params[parameter]
