"""What a browser's session remembers of a class, as a student and as its instructor.

A student is recognised by a token that the browser keeps, even when the page is reloaded or the phone has slept; the
address contains only the code. So whoever receives a student's link joins as another student. An instructor's session
has given the secret, which no address contains.
"""

import hmac
import secrets
import time
from contextlib import suppress
from dataclasses import asdict
from typing import NoReturn
from urllib.parse import urlencode

import streamlit as st

from ui.classroom import class_state as classes
from ui.classroom.attempts import Attempts
from ui.classroom.class_state import Change, Class, View, read_code, student_id
from ui.classroom.stores import StoreError, class_store
from ui.server.settings import settings
from ui.server.streamlit_private import browser_token
from ui.shell import address, page_state
from ui.shell import focus as shared_focus
from ui.shell.focus import CAME_FROM, CLASS, address_of
from ui.shell.guidance.before_lesson import read_parameters
from ui.shell.navigation import pages
from ui.words.texts import common, quote

_TOKEN, _REFUSED, _NOTE, _WHO = (f"class: {name}" for name in ("token", "refused code", "note", "student"))
_FOLLOWED, _OWN_VIEW = "class: number of the followed view", "class: own view"
_DESK, _RUN, _SAID = "desk: is open", "desk: code", "desk: line to show, and until when"
_SAID_SECONDS = 6.0
_READERS_OWN = ("language", "presenter", CAME_FROM)  # no part of a view that everybody opens
_SECRET = secrets.token_bytes(32)
_attempts = Attempts()  # at codes and at the secret, so that nobody finds either by trying


def classes_exist() -> bool:
    """Return whether this server has an instructor's desk."""
    return bool(settings().instructor)


def _visitor() -> tuple[str, str]:
    """Return a browser's token (or the session's) and its address, "" for this machine."""
    browser = browser_token() or st.session_state.setdefault(_TOKEN, secrets.token_hex(16))
    return browser, str(st.context.ip_address or "")


def take_note() -> str:
    """Return, once, a sentence about a class that was not joined, has ended or was left, or ""."""
    reason = st.session_state.pop(_NOTE, "")
    return common(f"class.{reason}", code=quote(st.session_state.get(_REFUSED, ""), most=20)) if reason else ""


# ---- a student ------------------------------------------------------------------------------------------------------


def enter() -> None:
    """Join the class that the address names, once, before the page is drawn."""
    named = address.value(CLASS) if classes_exist() else ""
    if named and not is_desk_open() and named not in (shared_focus.class_code(), st.session_state.get(_REFUSED)):
        join(named)


def join(typed: str) -> None:
    """Join the class with a code that was typed or is in the address, or keep a note for ``take_note``."""
    browser, ip_address = _visitor()
    if not _attempts.is_allowed(browser, ip_address):
        return _refuse(typed, "attempts")
    code, now = read_code(typed), time.time()
    who = student_id(code, browser)
    # A text for a network address, another one in each process; "" for this machine.
    origin = hmac.new(_SECRET, ip_address.encode(), "sha256").hexdigest()[:16] if ip_address else ""
    try:
        found = class_store().change(code, lambda state: classes.join(state, who, now=now, origin=origin))
    except StoreError:
        st.session_state[_NOTE] = "unreachable"  # the next run tries again
        return None
    if found is None:
        _attempts.count_failure(browser, ip_address)
        return _refuse(typed, "unknown")
    if who not in found.students:
        return _refuse(typed, classes.obstacle(found, who, origin) or "full")
    _attempts.count_success(browser)
    for key in (_REFUSED, _NOTE, _OWN_VIEW):
        st.session_state.pop(key, None)
    st.session_state[_FOLLOWED] = found.students[who].followed  # before a reload
    st.session_state[_WHO] = who
    shared_focus.set_class_code(code)
    return None


def _refuse(typed: str, reason: str) -> None:
    st.session_state[_REFUSED], st.session_state[_NOTE] = typed, reason


def leave() -> None:
    """Leave the class, which deletes what it has of this student."""
    _change_as_student(classes.leave)  # or it expires
    forget("left")


def forget(reason: str) -> None:
    """Forget a class that has ended or was left; the address may still name it until the page is drawn."""
    _refuse(shared_focus.class_code(), reason)
    shared_focus.set_class_code("")


def student() -> str:
    """Return the id of this session's student in its class."""
    return st.session_state.get(_WHO, "")


def report(page: str) -> Class | None:
    """Record the open page and return the class, possibly without this student; ``None`` if gone.

    Raises:
        StoreError: If the store cannot be reached.
    """
    who, now = student(), time.time()
    return class_store().refresh(shared_focus.class_code(), lambda state: classes.see(state, who, page, now=now))


def answer(number: int, text: str) -> None:
    """Send this student's answer to a question."""
    _change_as_student(classes.answer, number, text)


def _change_as_student(change: Change, *arguments: object) -> None:
    """Change the class, or leave it as it was while the store cannot be reached, which the bar says."""
    who = student()
    with suppress(StoreError):
        class_store().change(shared_focus.class_code(), lambda state: change(state, who, *arguments))


# ---- views: page, focus and choices as one text, without what each reader keeps --------------------------------------


def current_view() -> tuple[str, str]:
    """Return the page of this session and the parameters of its view."""
    page, focus = page_state.current_page(), shared_focus.current()
    found = {name: [value] for name, value in address_of(focus, whole=True).items() if name not in _READERS_OWN}
    return page, urlencode({**found, **page_state.choices(page)}, doseq=True)


def open_view(page: str, query: str) -> NoReturn:
    """Open a view, as its address would. This ends the run."""
    focus, choices = read_parameters(query, without=_READERS_OWN)
    shared_focus.change(**{name: value for name, value in asdict(focus).items() if name not in _READERS_OWN})
    page_state.take(choices)
    existing = pages()
    name = page if page in existing else next(iter(existing))
    address.open_page(name, existing[name])


def new_view(state: Class) -> View | None:
    """Return the view that the instructor has opened last, unless this student has already followed it."""
    view = state.view
    return view if view and view.number > st.session_state.get(_FOLLOWED, 0) else None


def follow(view: View) -> NoReturn:
    """Open the instructor's view, and remember the student's own one.

    It is the last one with the student's own sentence: a look at another head of the instructor's sentence does not
    replace it.
    """
    st.session_state[_FOLLOWED] = view.number
    _change_as_student(classes.follow, view.number)
    own, theirs = st.session_state.get(_OWN_VIEW), read_parameters(view.address, without=_READERS_OWN)[0].sentence
    if own is None or shared_focus.current().sentence not in (own[2], theirs):
        own = current_view()
    st.session_state[_OWN_VIEW] = (*own[:2], theirs)
    open_view(view.page, view.address)


def has_own_view() -> bool:
    """Return whether the student can go back to a view before the instructor's."""
    return _OWN_VIEW in st.session_state


def go_back() -> NoReturn:
    """Open the student's own view again."""
    open_view(*st.session_state.pop(_OWN_VIEW)[:2])


# ---- the instructor -------------------------------------------------------------------------------------------------


def unlock(secret: str) -> str:
    """Open the desk for this session; return the name of a message if that is refused, else ""."""
    browser, ip_address = _visitor()
    if not _attempts.is_allowed(browser, ip_address):
        return "wait"
    if not classes_exist() or not hmac.compare_digest(secret.encode(), settings().instructor.encode()):
        _attempts.count_failure(browser, ip_address)
        return "wrong_secret"
    _attempts.count_success(browser)
    st.session_state[_DESK] = True
    return ""


def is_desk_open() -> bool:
    """Return whether this session is the instructor's."""
    return classes_exist() and st.session_state.get(_DESK, False)


def open_class() -> bool:
    """Open a class and run it from this session; return whether there was space for another one."""
    state = classes.new_class(now=time.time())
    if is_new := class_store().open(state):
        run_class(state.code)
    return is_new


def run_class(code: str) -> None:
    """Run an open class from this session, which then no longer belongs to a student."""
    shared_focus.set_class_code("")
    st.session_state[_RUN] = code


def code() -> str:
    """Return the code of the class that is run from this session; "" if there is none."""
    return st.session_state.get(_RUN, "") if is_desk_open() else ""


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


def end() -> None:
    """End the class and delete everything about it.

    Raises:
        StoreError: If the store cannot be reached.
    """
    class_store().end(code())
    _close("over")


def _close(how: str) -> None:
    st.session_state.pop(_RUN, None)
    st.session_state[_NOTE] = how
