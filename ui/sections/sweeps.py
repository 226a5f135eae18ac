"""Sweeps: analyses that run the model for one location after the other.

A short one starts automatically. A long one starts on request; until then, an estimate is shown.
"""

from collections.abc import Iterable

import streamlit as st

from ui.page.page import Page
from ui.words.texts import listed

LARGE = 6e10  # weights of the layers × tokens × locations: about five seconds on one core
CHECKED = 5  # largest numbers of the estimate, which are also measured
_ASKED = "sweep: asked for"


def waits(p: Page, name: str, places: int) -> bool:
    """Return whether the sweep for ``name`` is long, and this reader has not requested it."""
    return is_long(p, places) and st.session_state.get(_ASKED) != (hash(p.run), name)


def is_long(p: Page, places: int) -> bool:
    """Return whether a sweep over ``places`` locations is long; each takes a pass over the sentence."""
    stacks, model = p.trace.stacks, p.checkpoint.model
    weights = sum(part.numel() for stack in stacks for part in model.get_submodule(stack).layers.parameters())
    return weights * sum(len(p.trace.tokens(stack)) for stack in stacks) * places > LARGE


def start_button(p: Page, name: str, label: str) -> None:
    """Draw a button that requests the sweep."""
    st.button(label, icon=":material/play_arrow:", key="sweep start", on_click=_ask, args=((hash(p.run), name),))


def _ask(what: tuple[int, str]) -> None:
    st.session_state[_ASKED] = what


def say_error(p: Page, pairs: Iterable[tuple[str, float, float]], *, count: int) -> None:
    """State the error of an estimate of ``count`` locations; ``pairs``: location, estimated, measured."""
    named = [p.md("estimate_pair", place=place, estimated=guess, measured=true) for place, guess, true in pairs]
    p.say("estimate", small=True, count=count, pairs=listed(named, "; "))
