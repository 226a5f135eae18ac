"""The instructor's session: the secret that opens the desk, and the class that is run from it."""

import hmac
import time

import streamlit as st

from ui.classroom import class_state as classes
from ui.classroom.attempts import Attempts
from ui.classroom.class_state import Change, Class
from ui.classroom.stores import StoreError, class_store
from ui.server.settings import settings
from ui.shell import focus as shared_focus
from ui.shell.in_class import membership
from ui.words.texts import common

_CODE, _OVER, _SAID = "desk: code", "desk: how the class ended", "desk: line to show, and until when"
_SAID_SECONDS = 6.0
_attempts = Attempts()  # at the secret


def unlock(secret: str) -> str:
    """Open the desk for this session; return the name of a message if that is refused, else ""."""
    browser, address = membership.visitor()
    if not _attempts.is_allowed(browser, address):
        return "wait"
    if not membership.classes_exist() or not hmac.compare_digest(secret.encode(), settings().instructor.encode()):
        _attempts.count_failure(browser, address)
        return "wrong_secret"
    _attempts.count_success(browser)
    membership.open_desk()
    return ""


def open_class() -> bool:
    """Open a class and run it from this session; return whether there was space for another one."""
    state = classes.new_class(now=time.time())
    if not class_store().open(state):
        return False
    run_class(state.code)
    return True


def run_class(code: str) -> None:
    """Run an open class from this session, which then is no student's."""
    shared_focus.set_class_code("")
    st.session_state[_CODE] = code


def code() -> str:
    """Return the code of the class that is run from this session; "" if there is none."""
    return st.session_state.get(_CODE, "") if membership.is_desk_open() else ""


def renewed_or_left() -> Class | None:
    """Return the class, which stays open while its instructor is there.

    Draw a line if it cannot be reached, and leave a class that is gone.
    """
    now = time.time()
    try:
        state = class_store().refresh(code(), lambda state: classes.renew(state, now=now))
    except StoreError:
        st.caption(f":material/cloud_off: {common('class.unreachable')}")
        return None
    if state is None:
        _close("gone")
        st.rerun()
    return state


def change(change: Change) -> bool:
    """Change the class; return false, and ``say`` so, if the store cannot be reached."""
    try:
        class_store().change(code(), change)
    except StoreError:
        say(common("class.unreachable"))
        return False
    return True


def say(line: str) -> None:
    """Let the bar or the desk show a line for a few seconds; a callback itself draws nothing."""
    st.session_state[_SAID] = line, time.monotonic() + _SAID_SECONDS


def said() -> str:
    """Return what the last callback reported, as long as it is to be seen; "" otherwise."""
    line, until = st.session_state.get(_SAID, ("", 0.0))
    return line if time.monotonic() < until else ""


def take_end() -> str:
    """Return, once, how this session's class came to its end: "ended", "gone", or "" if it did not."""
    return st.session_state.pop(_OVER, "")


def end() -> None:
    """End the class and delete everything about it.

    Raises:
        StoreError: If the store cannot be reached.
    """
    class_store().end(code())
    _close("ended")


def _close(how: str) -> None:
    st.session_state.pop(_CODE, None)
    st.session_state[_OVER] = how
