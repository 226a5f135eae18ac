"""What a student's session remembers of a class: its code, the student, the views opened.

A student is recognised by a token that the browser keeps, even when the page is reloaded or the phone has slept; the
address contains only the code. So whoever receives a student's link joins as another student.
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
from ui.classroom.class_state import Class, View, read_code, student_id
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
_FOLLOWED, _OWN_VIEW, _DESK = "class: number of the followed view", "class: own view", "class: desk is open"
_READERS_OWN = ("language", "presenter", CAME_FROM)  # no part of a view that everybody opens
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


def visitor() -> tuple[str, str]:
    """Return a browser's token (or the session's) and its address, "" for this machine."""
    browser = browser_token() or st.session_state.setdefault(_TOKEN, secrets.token_hex(16))
    return browser, str(st.context.ip_address or "")


def enter() -> None:
    """Join the class that the address names, once, before the page is drawn."""
    named = address.value(CLASS) if classes_exist() else ""
    if named and not is_desk_open() and named not in (shared_focus.class_code(), st.session_state.get(_REFUSED)):
        join(named)


def join(typed: str) -> None:
    """Join the class with a code that was typed or is in the address, or keep a note for ``take_note``."""
    browser, ip_address = visitor()
    if not _attempts.is_allowed(browser, ip_address):
        return _refuse(typed, "attempts")
    code, now = read_code(typed), time.time()
    who = student_id(code, browser)
    # A text for a network address, another one in each process; "" for this machine.
    origin = hmac.new(_SECRET, ip_address.encode(), "sha256").hexdigest()[:16] if ip_address else ""

    def change(state: Class) -> Class:
        return classes.join(state, who, now=now, origin=origin)

    try:
        found = class_store().change(code, change) if code else None
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
    who, code = student(), shared_focus.class_code()
    forget("left")
    with suppress(StoreError):  # then it expires
        class_store().change(code, lambda state: classes.leave(state, who))


def forget(reason: str) -> None:
    """Forget a class that has ended or was left; the address may still name it until the page is drawn."""
    _refuse(shared_focus.class_code(), reason)
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
    return class_store().refresh(code, lambda state: classes.see(state, who, page, now=now))


def answer(number: int, text: str) -> None:
    """Send this student's answer to a question."""
    who = student()
    with suppress(StoreError):  # the question stays as it was, and the bar says that the class cannot be reached
        class_store().change(shared_focus.class_code(), lambda state: classes.answer(state, who, number, text))


# ---- views: page, focus and choices as one text, without what each reader keeps --------------------------------------


def current_view() -> tuple[str, str]:
    """Return the page of this session and the parameters of its view."""
    page, focus = page_state.current_page(), shared_focus.current()
    found = {name: [value] for name, value in address_of(focus, whole=True).items() if name not in _READERS_OWN}
    return page, urlencode({**found, **page_state.choices(page)}, doseq=True)


def open_view(page: str, query: str) -> NoReturn:
    """Open a view, as its address would. This ends the run."""
    focus, choices = read_parameters(query, without=_READERS_OWN)
    changes = {name: value for name, value in asdict(focus).items() if name not in _READERS_OWN}
    shared_focus.change(**changes)
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
    st.session_state[_FOLLOWED], who = view.number, student()
    with suppress(StoreError):
        class_store().change(shared_focus.class_code(), lambda state: classes.follow(state, who, view.number))
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
