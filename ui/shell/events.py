"""Components of ours in the browser, and what they say, checked before it is believed: anybody can send anything.

Each function that checks gives ``None`` for what is no such event, and nothing happens then; ``measure`` gives what is
usual.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import streamlit as st

# Of a position, a layer, a step, in an event or in an address; one of a thousand digits would only fill the screen.
LARGEST = 10**9 - 1


def component(name: str, script: Path) -> Callable[..., Any]:
    """The component that ``script`` draws, in the style of the ``.css`` beside it, where there is one."""
    style = script.with_name(f"{script.name.partition('.')[0]}.css")
    css = style.read_text(encoding="utf-8") if style.is_file() else None
    return st.components.v2.component(f"glassformer_{name}", css=css, js=script.read_text(encoding="utf-8"))


def heard(key: str, event: str) -> object:
    """In a callback: what the component with this key has sent as ``event``; ``None`` where its page has been left."""
    return getattr(st.session_state.get(key), event, None)


def whole_number(value: object) -> int | None:
    """A number from 0 on without a part behind the point: the browser has one kind of number, so 3.0 is 3."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if 0 <= value <= LARGEST and value == int(value) else None


def whole_numbers(value: object, names: Sequence[str]) -> tuple[int, ...] | None:
    """The numbers of these names in an event that is a mapping."""
    if not isinstance(value, Mapping):
        return None
    numbers = tuple(whole_number(value.get(name)) for name in names)
    return None if None in numbers else numbers


def measure(value: object, usual: float, *, least: float, most: float) -> float:
    """A length, held between two ends; ``usual`` for what is no number."""
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value:
        return usual
    return float(min(most, max(least, value)))


def one_of(value: object, choices: Collection[str]) -> str | None:
    """A word that is one of ``choices``."""
    return value if isinstance(value, str) and value in choices else None
