"""A row of ready things to take, one click each. Buttons, not a choice: what stands elsewhere may be changed by hand at
any moment, and a choice that the browser still holds then would be reported as if it had been made again."""

from collections.abc import Callable, Sequence

import streamlit as st

from ui.words.texts import as_plain


def offers(
    label: str,
    names: Sequence[str],
    *,
    key: str,
    chosen: str | None,
    take: Callable[[str], None],
    show_label: bool = True,
) -> None:
    """``take(name)`` is called, before the page runs, when one is clicked; ``chosen`` is marked."""
    with st.container(key=f"offers {key}", gap="xxsmall"):
        if show_label:
            st.caption(label)
        with st.container(horizontal=True, gap="xsmall"):
            for number, name in enumerate(names):
                kind = "primary" if name == chosen else "secondary"
                st.button(as_plain(name), key=f"{key} {number}", type=kind, on_click=take, args=(name,))
