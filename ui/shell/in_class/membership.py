"""What a session remembers of a class: its code, who the student is, and the views that were opened.

A student is recognised by a token that the browser keeps, even when the page is reloaded or the phone has slept; the
address contains only the code. So whoever receives a student's link joins as another student.
"""

import hmac
import secrets
import time
from contextlib import suppress

import streamlit as st

from ui.classroom import class_state as classes
from ui.classroom.attempts import Attempts
from ui.classroom.class_state import Class, View, read_code, student_id
from ui.classroom.stores import StoreError, class_store, refresh
from ui.compute.loading import choosable_checkpoints
from ui.server.settings import settings
from ui.server.streamlit_private import browser_token
from ui.shell import address
from ui.shell import focus as shared_focus
from ui.shell.focus import CLASS
from ui.shell.in_class.shared_view import current_view, focus_of
from ui.words.texts import common, quote

_TOKEN, _REFUSED, _NOTE = "class: token", "class: refused code", "class: note"
_WHO = "class: student"
_FOLLOWED, _OWN_VIEW, _DESK = "class: number of the followed view", "class: own view", "class: desk is open"
_SECRET = secrets.token_bytes(32)
_attempts = Attempts()  # at codes, so that nobody finds a class by trying


def classes_exist() -> bool:
    """Return whether this server has an instructor's desk."""
    return bool(settings().instructor)


def open_desk() -> None:
    """Remember that this session is the instructor's."""
    st.session_state[_DESK] = True


def is_desk_open() -> bool:
    """Return whether this session is the instructor's."""
    return classes_exist() and st.session_state.get(_DESK, False)


def enter() -> None:
    """Join the class that the address names, once, and keep its checkpoint; before the page is drawn."""
    if not classes_exist():
        return
    named = address.value(CLASS)
    if named and not is_desk_open() and named not in (shared_focus.class_code(), st.session_state.get(_REFUSED)):
        join(named)
    if kept := kept_checkpoint():
        _keep_checkpoint(kept)


def join(typed: str) -> bool:
    """Join the class with a code that was typed or is in the address; return whether that succeeded."""
    browser, address = visitor()
    if not _attempts.is_allowed(browser, address):
        return _refuse(typed, "attempts")
    code = read_code(typed)
    who, origin = student_id(code, browser), _origin(address)

    def change(state: Class) -> Class:
        return classes.join(state, who, now=time.time(), origin=origin)

    try:
        found = class_store().change(code, change) if code else None
    except StoreError:
        st.session_state[_NOTE] = "unreachable"  # the next run tries again
        return False
    if found is None:
        _attempts.count_failure(browser, address)
        return _refuse(typed, "unknown")
    if who not in found.students:
        return _refuse(typed, classes.obstacle(found, who, origin) or "full")
    _attempts.count_success(browser)
    for key in (_REFUSED, _NOTE, _OWN_VIEW):
        st.session_state.pop(key, None)
    st.session_state[_FOLLOWED] = found.students[who].followed  # before a reload
    st.session_state[_WHO] = who
    shared_focus.set_class_code(code)
    return True


def _origin(address: str) -> str:
    """Return a text for a network address, another one in each process; "" for this machine."""
    return hmac.new(_SECRET, address.encode(), "sha256").hexdigest()[:16] if address else ""


def _refuse(typed: str, reason: str) -> bool:
    st.session_state[_REFUSED], st.session_state[_NOTE] = typed, reason
    return False


def leave() -> None:
    """Leave the class, which deletes what it has of this student."""
    who, code = student(), shared_focus.class_code()
    forget("left")
    with suppress(StoreError):  # then it expires
        class_store().change(code, lambda state: classes.leave(state, who))


def forget(reason: str) -> None:
    """Forget a class that has ended or was left; the address may still name it until the page is drawn."""
    st.session_state[_REFUSED], st.session_state[_NOTE] = shared_focus.class_code(), reason
    shared_focus.set_class_code("")


def take_note() -> str:
    """Return, once, a sentence about a class that was not joined, has ended or was left, or ""."""
    reason = st.session_state.pop(_NOTE, "")
    return common(f"class.{reason}", code=quote(st.session_state.get(_REFUSED, ""), most=20)) if reason else ""


def student() -> str:
    """Return the id of this session's student in its class."""
    return st.session_state.get(_WHO, "")


def report(page: str) -> Class | None:
    """Record the open page and return the class, possibly without this student; ``None`` if gone.

    Raises:
        StoreError: If the store cannot be reached.
    """
    code, who, now = shared_focus.class_code(), student(), time.time()
    return refresh(class_store(), code, lambda state: classes.see(state, who, page, now=now))


def answer(number: int, text: str) -> None:
    """Send this student's answer to a question."""
    who = student()
    with suppress(StoreError):  # the question stays as it was, and the bar says that the class cannot be reached
        class_store().change(shared_focus.class_code(), lambda state: classes.answer(state, who, number, text))


# The views that the instructor opens


def new_view(state: Class) -> View | None:
    """Return the view that the instructor has opened last, unless this student has already followed it."""
    view = state.view
    return view if view and view.number > st.session_state.get(_FOLLOWED, 0) else None


def follow(view: View) -> None:
    """Remember the student's own view before another one is opened.

    It is the last one with the student's own sentence: a look at another head of the instructor's sentence does not
    replace it.
    """
    st.session_state[_FOLLOWED], who = view.number, student()
    with suppress(StoreError):
        class_store().change(shared_focus.class_code(), lambda state: classes.follow(state, who, view.number))
    page, query = current_view()
    own, theirs = st.session_state.get(_OWN_VIEW), focus_of(view.address).sentence
    if own is None or focus_of(query).sentence not in (own[2], theirs):
        own = (page, query)
    st.session_state[_OWN_VIEW] = (*own[:2], theirs)


def own_view() -> tuple[str, str] | None:
    """Return page and parameters of the student's view before the instructor's, if there is one."""
    own = st.session_state.get(_OWN_VIEW)
    return own[:2] if own else None


def forget_own_view() -> None:
    """Forget the student's view once it is open again."""
    st.session_state.pop(_OWN_VIEW, None)


# The checkpoint that everybody keeps


def kept_checkpoint() -> str:
    """Return the checkpoint that this student has to keep; "" outside of a class, or if it is free."""
    code = shared_focus.class_code()
    if not code or not classes_exist():
        return ""
    try:
        state = class_store().read(code)
    except StoreError:
        return ""
    return state.checkpoint if state else ""


def _keep_checkpoint(name: str) -> None:
    """Return to the class's checkpoint; a lesson, which needs its own, is left alone."""
    focus = shared_focus.current()
    if focus.checkpoint == name or focus.lesson or name not in choosable_checkpoints(name):
        return
    shared_focus.change(checkpoint=name)
    shared_focus.add_note(common("class.kept", name=name))


def visitor() -> tuple[str, str]:
    """Return a browser's token (or the session's) and its address, "" for this machine."""
    browser = browser_token() or st.session_state.setdefault(_TOKEN, secrets.token_hex(16))
    return browser, str(st.context.ip_address or "")
