"""Our browser components and their events, validated because clients can send arbitrary data.

Each validating function returns ``None`` for an invalid event, which is then ignored.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import streamlit as st

# Limit for a position, layer or step in an event or an address; a number of a thousand digits would only fill the
# screen.
LARGEST = 10**9 - 1


def component(name: str, script: Path) -> Callable[..., Any]:
    """Return the component drawn by ``script``, with the style of the ``.css`` file next to it, if any."""
    style = script.with_name(f"{script.name.partition('.')[0]}.css")
    css = style.read_text(encoding="utf-8") if style.is_file() else None
    return st.components.v2.component(f"glassformer_{name}", css=css, js=script.read_text(encoding="utf-8"))


def nothing() -> None:
    """Do nothing: Streamlit reports an event only if it has a callback, and the returned value is enough."""


def heard(key: str, event: str) -> object:
    """Return what a component has sent as ``event``, in its callback; ``None`` if its page has been left."""
    return getattr(st.session_state.get(key), event, None)


def whole_number(value: object) -> int | None:
    """Return a nonnegative integer; the browser has only one type of number, so 3.0 is 3."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if 0 <= value <= LARGEST and value == int(value) else None


def whole_numbers(value: object, names: Sequence[str]) -> tuple[int, ...] | None:
    """Return the integers under these names in an event; ``None`` without all of them."""
    if not isinstance(value, Mapping):
        return None
    numbers = tuple(whole_number(value.get(name)) for name in names)
    return None if None in numbers else numbers


def one_of(value: object, choices: Collection[str]) -> str | None:
    """Return a word if it is one of ``choices``."""
    return value if isinstance(value, str) and value in choices else None


# Keyboard focus on what a click has opened, with scrolling if necessary.
_way = component("way", Path(__file__).with_name("way.js"))


def mark_opened(place: str) -> None:
    """Record that something was opened in the container with the key ``place``.

    Call this in a callback, or before the page runs again.
    """
    st.session_state[_count(place)] = st.session_state.get(_count(place), 0) + 1


def lead_to(place: str) -> None:
    """Navigate to ``place`` once ``mark_opened`` has been called; call this on every run."""
    _way(key=f"way to {place}", data={"place": _class(place), "opened": st.session_state.get(_count(place), 0)})


def read_aloud(place: str) -> None:
    """Let screen readers announce changes in ``place`` while the keyboard stays on the edited figure."""
    _way(key=f"way to {place}", data={"place": _class(place), "aloud": True})


def _class(place: str) -> str:
    return place.replace(" ", "-")


def _count(place: str) -> str:
    return f"{place}: opened"
