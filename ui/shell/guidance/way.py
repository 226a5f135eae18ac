"""Navigation to content that a click opens: keyboard focus, and scrolling if necessary."""

from pathlib import Path

import streamlit as st

from ui.shell.events import component

_component = component("way", Path(__file__).with_suffix(".js"))


def mark_opened(place: str) -> None:
    """Record that something was opened in the container with the key ``place``.

    Call this in a callback, or before the page runs again.
    """
    st.session_state[_count(place)] = st.session_state.get(_count(place), 0) + 1


def lead_to(place: str) -> None:
    """Navigate to ``place`` once ``mark_opened`` has been called; call this on every run."""
    _component(key=f"way to {place}", data={"place": _class(place), "opened": st.session_state.get(_count(place), 0)})


def read_aloud(place: str) -> None:
    """Let screen readers announce changes in ``place`` while the keyboard stays on the edited figure."""
    _component(key=f"way to {place}", data={"place": _class(place), "aloud": True})


def _class(place: str) -> str:
    return place.replace(" ", "-")


def _count(place: str) -> str:
    return f"{place}: opened"
