"""A text being written, one token at a time: buttons, arrow keys and the tokens themselves go from step to step.

The place moves at once in the browser; Python hears of it when the keys rest, and redraws what belongs to the step.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import streamlit as st

from transformer.tokens import Token, TokenSequence
from ui.text import common

_HERE = Path(__file__).parent
_component = st.components.v2.component(
    "glassformer_stepper",
    css=(_HERE / "stepper.css").read_text(encoding="utf-8"),
    js=(_HERE / "stepper.js").read_text(encoding="utf-8"),
)
_STATE, _TEXT, PARAMETER = "step: current", "step: of which text", "step"


def stepper(tokens: TokenSequence, *, text: object, before: Sequence[Token] = (), n_given: int = 0) -> int:
    """Draw the stepper over ``tokens`` (what was written) and return the current step, 0 … len(tokens) − 1.

    ``before``: tokens in front of the first step (a prompt). The first ``n_given`` tokens were given, not chosen.
    ``text``: anything that tells one text from another; another text begins at step 0. The step is kept in the address.
    """
    step = _current(len(tokens), text)
    _component(
        key="stepper",
        data=stepper_data(tokens, step=step, before=before, n_given=n_given),
        on_step_change=_moved,
    )
    return step


def stepper_data(tokens: TokenSequence, *, step: int, before: Sequence[Token] = (), n_given: int = 0) -> dict:
    """What the component draws: plain text only, which it puts on the page with ``textContent``."""
    names = ("back", "next", "step", "of", "keys", "text")
    return {
        "before": [_token(token) for token in before],
        "tokens": [{**_token(token), "given": token.index < n_given} for token in tokens],
        "step": step,
        "words": {name: common(f"stepper.{name}") for name in names},
    }


def _token(token: Token) -> dict:
    return {"text": token.display, "special": token.special}


def _current(count: int, text: object) -> int:
    """The step of this session; from the address where the session has none."""
    state = st.session_state
    if _STATE not in state:
        asked = st.query_params.get(PARAMETER, "")
        state[_STATE] = int(asked) if asked.isascii() and asked.isdecimal() and len(asked) < 6 else 0
    elif state.get(_TEXT) != text:
        state[_STATE] = 0
    state[_TEXT] = text
    step = min(state[_STATE], count - 1)
    if st.query_params.get(PARAMETER, "0") != str(step):
        st.query_params[PARAMETER] = str(step)
    return step


def move_to(step: int, *, text: object) -> None:
    """In a callback, before ``stepper`` runs: go to a step, also of another text than the one shown so far."""
    st.session_state[_STATE], st.session_state[_TEXT] = step, text


def _moved() -> None:
    step = st.session_state["stepper"].step
    if isinstance(step, int | float) and step >= 0:  # the browser has one kind of number
        st.session_state[_STATE] = int(step)
