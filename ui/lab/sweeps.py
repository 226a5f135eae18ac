"""Sweeps: analyses that run the model for one place after the other. A short one begins by itself; a long one waits
until it is asked for, and an estimate stands in its place."""

from collections.abc import Sequence

import numpy as np
import streamlit as st

from charts.toolkit.style import signed, three_digits
from transformer.attribution.attention_trust import spearman
from ui.compute.store import Name, store
from ui.shell.page import Page

LARGE = 6e10  # weights of the layers × tokens × places: about five seconds of a core
CHECKED = 5  # of the estimate's largest numbers, which are measured
_ASKED = "sweep: asked for"


def waits(p: Page, name: Name, places: int) -> bool:
    """Whether the sweep that gives ``name`` is long, and neither done nor asked for."""
    asked = st.session_state.get(_ASKED) == (hash(p.run), name)
    return is_long(p, places) and not asked and store.known(p.run, name) is None


def is_long(p: Page, places: int) -> bool:
    """Of so many ``places``, each of which takes a pass over the sentence."""
    stacks, model = p.trace.stacks, p.checkpoint.model

    def count() -> int:
        return sum(part.numel() for stack in stacks for part in model.get_submodule(stack).layers.parameters())

    weights = store.get(p.checkpoint, "weights of the layers", count)
    return weights * sum(len(p.trace.tokens(stack)) for stack in stacks) * places > LARGE


def start_button(p: Page, name: Name, label: str) -> None:
    """Ask for it."""
    st.button(label, icon=":material/play_arrow:", key="sweep start", on_click=_ask, args=((hash(p.run), name),))


def _ask(what: tuple[int, Name]) -> None:
    st.session_state[_ASKED] = what


def say_error(p: Page, names: Sequence[str], estimated: np.ndarray, measured: np.ndarray, *, count: int) -> None:
    """How far an estimate of ``count`` places can be trusted: its largest numbers beside what was measured there."""
    pair = p.text["estimate_pair"]
    pairs = [
        pair.format(place=name, estimated=signed(float(guess)), measured=signed(float(true)))
        for name, guess, true in zip(names, estimated, measured, strict=True)
    ]
    st.caption(p.text["estimate"].format(count=count, pairs="; ".join(pairs)))


def say_agreement(p: Page, estimated: np.ndarray, measured: np.ndarray) -> None:
    """How good the estimate was, where everything is measured: [place] each."""
    known = np.isfinite(estimated) & np.isfinite(measured)
    if known.sum() > 1:
        error = three_digits(float(np.abs(estimated - measured)[known].mean()))
        agreement = three_digits(spearman(estimated[known], measured[known]))
        st.caption(p.text["estimate_after"].format(agreement=agreement, error=error))
