"""The instructor's session: the secret that opens the desk, and the class that is run from it."""

import hmac
import time

import streamlit as st

from ui.classroom import class_state as classes
from ui.classroom.attempts import Attempts
from ui.classroom.class_state import Change, Class
from ui.classroom.stores import StoreError, class_store, refresh
from ui.server.settings import settings
from ui.shell import focus as shared_focus
from ui.shell.in_class import membership
from ui.words.texts import common

_CODE, _ENDED, _SAID = "desk: code", "desk: class has ended", "desk: line to show, and until when"
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


def renewed() -> Class | None:
    """Return the class, which stays open while its instructor is there; ``None`` if it has ended.

    Raises:
        StoreError: If the store cannot be reached.
    """
    now = time.time()
    return refresh(class_store(), code(), lambda state: classes.renew(state, now=now))


def renewed_or_left() -> Class | None:
    """Return the ``renewed`` class; draw a line if it cannot be reached, and leave one that has ended."""
    try:
        state = renewed()
    except StoreError:
        st.caption(f":material/cloud_off: {common('class.unreachable')}")
        return None
    if state is None:
        close(ended=True)
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


def close(*, ended: bool = False) -> None:
    """Run no class from this session any more; ``ended`` says that the desk reports its end."""
    st.session_state.pop(_CODE, None)
    st.session_state[_ENDED] = ended


def take_ended() -> bool:
    """Return, once, whether the class of this session has just ended."""
    return st.session_state.pop(_ENDED, False)


def state_of(code: str) -> Class | None:
    """Return a class outside of a run, for a file; ``None`` if it has ended or cannot be reached."""
    try:
        return class_store().read(code)
    except StoreError:
        return None


def end() -> None:
    """End the class and delete everything about it.

    Raises:
        StoreError: If the store cannot be reached.
    """
    class_store().end(code())
    close(ended=True)
