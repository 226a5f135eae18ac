"""At which step of a text being written the reader is: kept in the session, and in the address.

The drawing (``charts/canvas/source/drawings/walk.js``) steps by itself and tells Python once the reader rests. The
other way round, Python moves the reader only now and then: to where a branch begins, say. So what the drawing is sent
names the step where Python last put the reader, and stays the same while the reader walks.
"""

import streamlit as st

from ui.shell import address
from ui.shell.events import heard, whole_number

KEY = "stepper"
_STATE, _TEXT, _BEGIN, PARAMETER = "step: current", "step: of which text", "step: begins at", "step"


def current(count: int, *, text: object) -> int:
    """The step of this session, 0 … ``count`` − 1; from the address where the session has none.

    ``text``: anything that tells one text from another; another text begins at step 0.
    """
    state = st.session_state
    if _STATE not in state:
        asked = address.value(PARAMETER)
        move_to(int(asked) if asked.isascii() and asked.isdecimal() and len(asked) < 6 else 0, text=text)
    elif state.get(_TEXT) != text:
        move_to(0, text=text)
    step = min(state[_STATE], count - 1)
    if address.value(PARAMETER, "0") != str(step):
        address.write(PARAMETER, (str(step),))
    return step


def begin() -> tuple[int, int]:
    """(how often Python has moved the reader, to which step the last time), for ``charts.canvas.written_steps``."""
    return st.session_state.get(_BEGIN, (0, 0))


def move_to(step: int, *, text: object) -> None:
    """In a callback, before ``current``: go to a step, also of another text than the one shown so far."""
    state = st.session_state
    state[_STATE], state[_TEXT], state[_BEGIN] = step, text, (begin()[0] + 1, step)


def moved() -> None:
    """The callback of the drawing: the reader rests at another step; what comes late, from a page that has been left,
    has no state any more."""
    step = whole_number(heard(KEY, "step"))
    if step is not None:
        st.session_state[_STATE] = step
