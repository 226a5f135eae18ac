"""At which step of a text being written the reader is: kept in the session, and in the address.

The drawing (``charts/canvas/source/drawings/walk.js``) steps by itself and tells Python once the reader rests. The
other way round, Python moves the reader only now and then: to where a branch begins, say. So what the drawing is sent
names the step where Python last put the reader, and stays the same while the reader walks.
"""

import streamlit as st

from ui.shell import choice, page_state
from ui.shell.actions import Actions, SelectStep, SetChoice
from ui.shell.reducer import State

KEY = "stepper"
PARAMETER = "step"
# In the session: which text the drawing shows, and how Python has moved the reader in it.
_TEXT, _BEGIN = "step: of which text", "step: begins at"


def asked(*, text: tuple) -> int | None:
    """Return the step that was asked for, which the text may be too short to have; ``None`` if none was.

    ``text``: anything that tells one text from another; for another text no step has been asked for.
    """
    page_state.belongs_to(PARAMETER, text)
    step = choice.value(PARAMETER)
    return int(step) if step.isascii() and step.isdecimal() and len(step) < 6 else None


def settle(step: int, *, text: tuple) -> None:
    """Keep the step that is shown, where it is not the one that was asked for; another text begins there."""
    if choice.value(PARAMETER) not in ("", str(step)):
        choice.put(PARAMETER, step, owner=text)
    if page_state.is_restored() or st.session_state.get(_TEXT) != hash(text):
        _move(step, text)


def begin() -> tuple[int, int]:
    """(how often Python has moved the reader, to which step the last time), for ``charts.canvas.written_steps``."""
    return st.session_state.get(_BEGIN, (0, 0))


def move_to(step: int, *, text: tuple) -> None:
    """In a callback, before ``asked``: go to a step, also of another text than the one shown so far."""
    choice.put(PARAMETER, step, page="decoding", owner=text)
    _move(step, text)


def rests_at(_state: State, chosen: SelectStep) -> Actions:
    """What it means that the reader rests at another step of the drawing."""
    return (SetChoice(PARAMETER, (str(chosen.step),), page="decoding"),)


def _move(step: int, text: tuple) -> None:
    st.session_state[_TEXT], st.session_state[_BEGIN] = hash(text), (begin()[0] + 1, step)
