"""The way to what a click opens: the focus of the keyboard moves there, and the window where it is out of sight."""

from pathlib import Path

import streamlit as st

from ui.shell.events import component

_component = component("way", Path(__file__).with_suffix(".js"))


def opened(place: str) -> None:
    """In a callback, or before the page runs again: something was opened in the container with the key ``place``."""
    st.session_state[_count(place)] = st.session_state.get(_count(place), 0) + 1


def way_to(place: str) -> None:
    """On every run, also while there is nothing in ``place``: leads there once, when it has been ``opened``."""
    _component(key=f"way to {place}", data={"place": _class(place), "opened": st.session_state.get(_count(place), 0)})


def read_aloud(place: str) -> None:
    """What changes in ``place`` is said by a screen reader, while the keyboard stays where it is: on the picture that
    is being edited."""
    _component(key=f"way to {place}", data={"place": _class(place), "aloud": True})


def _class(place: str) -> str:
    return place.replace(" ", "-")


def _count(place: str) -> str:
    return f"{place}: opened"
