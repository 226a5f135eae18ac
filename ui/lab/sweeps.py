"""Sweeps: analyses that run the model for one location after the other.

A short one starts automatically. A long one starts on request; until then, an estimate is shown.
"""

from collections.abc import Sequence

import numpy as np
import streamlit as st

from charts.toolkit.style import signed, three_digits
from transformer.attribution.attention_trust import spearman
from ui.compute.store import Name, store
from ui.page.page import Page

LARGE = 6e10  # weights of the layers × tokens × locations: about five seconds on one core
CHECKED = 5  # largest numbers of the estimate, which are also measured
_ASKED = "sweep: asked for"


def waits(p: Page, name: Name, places: int) -> bool:
    """Return whether the sweep for ``name`` is long, and neither done nor requested."""
    asked = st.session_state.get(_ASKED) == (hash(p.run), name)
    return is_long(p, places) and not asked and store.known(p.run, name) is None


def is_long(p: Page, places: int) -> bool:
    """Return whether a sweep over ``places`` locations is long; each takes a pass over the sentence."""
    stacks, model = p.trace.stacks, p.checkpoint.model

    def count() -> int:
        return sum(part.numel() for stack in stacks for part in model.get_submodule(stack).layers.parameters())

    weights = store.get(p.checkpoint, "weights of the layers", count)
    return weights * sum(len(p.trace.tokens(stack)) for stack in stacks) * places > LARGE


def start_button(p: Page, name: Name, label: str) -> None:
    """Draw a button that requests the sweep."""
    st.button(label, icon=":material/play_arrow:", key="sweep start", on_click=_ask, args=((hash(p.run), name),))


def _ask(what: tuple[int, Name]) -> None:
    st.session_state[_ASKED] = what


def say_error(p: Page, names: Sequence[str], estimated: np.ndarray, measured: np.ndarray, *, count: int) -> None:
    """Show the error of an estimate of ``count`` locations, by measuring its largest numbers."""
    pair = p.text["estimate_pair"]
    pairs = [
        pair.format(place=name, estimated=signed(float(guess)), measured=signed(float(true)))
        for name, guess, true in zip(names, estimated, measured, strict=True)
    ]
    st.caption(p.text["estimate"].format(count=count, pairs="; ".join(pairs)))


def say_agreement(p: Page, estimated: np.ndarray, measured: np.ndarray) -> None:
    """Show how good the estimate was once everything is measured; both arrays are [location]."""
    known = np.isfinite(estimated) & np.isfinite(measured)
    if known.sum() > 1:
        error = three_digits(float(np.abs(estimated - measured)[known].mean()))
        agreement = three_digits(spearman(estimated[known], measured[known]))
        st.caption(p.text["estimate_after"].format(agreement=agreement, error=error))
