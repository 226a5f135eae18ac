"""A row of buttons for ready-made values.

They are buttons and not a choice: the value may be changed elsewhere at any moment, and a choice that the browser still
holds would then be reported as if it had been made again.
"""

from collections.abc import Callable, Sequence

import streamlit as st

from ui.words.texts import as_plain


def offer(
    label: str,
    names: Sequence[str],
    *,
    key: str,
    chosen: str | None,
    take: Callable[[str], None],
    show_label: bool = True,
) -> None:
    """Draw the row; ``take(name)`` is called on a click, before the page runs; ``chosen`` is highlighted."""
    with st.container(key=f"offers {key}", gap="xxsmall"):
        if show_label:
            st.caption(label)
        with st.container(horizontal=True, gap="xsmall"):
            for number, name in enumerate(names):
                kind = "primary" if name == chosen else "secondary"
                st.button(as_plain(name), key=f"{key} {number}", type=kind, on_click=take, args=(name,))
