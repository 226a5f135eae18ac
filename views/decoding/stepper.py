"""The step of a text that the reader has reached, kept in the session and in the address.

The drawing (``charts/canvas/source/drawings/walk.js``) steps in the browser and informs Python when it stops. In
the other direction, Python moves the reader rarely, e.g. to the start of a branch. The data sent to the drawing
contain the step to which Python last moved the reader, and do not change while the reader steps.
"""

import streamlit as st

from ui.shell import choice, page_state

KEY = "stepper"
PARAMETER = "step"
# Keys of the session: the text that the figure shows, and the step to which Python has moved the reader.
_TEXT, _BEGIN = "step: of which text", "step: begins at"


def asked(*, text: tuple) -> int | None:
    """Return the requested step, which may lie beyond the end of the text; ``None`` without a request.

    ``text``: anything that distinguishes texts; a request holds for one text.
    """
    page_state.belongs_to(PARAMETER, text)
    return choice.integer(PARAMETER)


def settle(step: int, *, text: tuple) -> None:
    """Keep the step that is shown if it differs from the requested one; another text begins there."""
    if choice.value(PARAMETER) not in ("", str(step)):
        choice.correct(PARAMETER, (str(step),))
    if page_state.is_restored() or st.session_state.get(_TEXT) != hash(text):
        _move(step, text)


def begin() -> tuple[int, int]:
    """Return how often Python has moved the reader, and to which step last (``written_steps``)."""
    return st.session_state.get(_BEGIN, (0, 0))


def move_to(step: int, *, text: tuple) -> None:
    """Go to a step, even of a text that is not shown yet; for a callback, which runs before ``asked``."""
    choice.put(PARAMETER, step, page="decoding", owner=text)
    _move(step, text)


def rest_at(step: int) -> None:
    """Keep the step at which the reader has stopped in the drawing: its callback."""
    choice.put(PARAMETER, step, page="decoding")


def _move(step: int, text: tuple) -> None:
    st.session_state[_TEXT], st.session_state[_BEGIN] = hash(text), (begin()[0] + 1, step)
