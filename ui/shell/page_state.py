"""The reader's choices on each page, as the strings of their URL parameters.

A drawn control holds its own value, also on other pages (Streamlit's ``persist_state="session"``); a choice at its
default has no strings. What an address or a click has set stands here until its control reads it. So the address of a
page is known before the page runs: ``navigation`` sends it when another page is opened.

An address that the browser provides (opened, typed, Back, Forward) replaces the choices of its page.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import streamlit as st

from ui.server.streamlit_private import page_hash

Texts = tuple[str, ...]

_CHOICES, _ARRIVED, _BROUGHT = "page state: choices", "page state: arrived", "page state: brought"
_PAGE, _NAMES = "page state: page", "page state: names by hash"
_TOLD = "page state: page that the browser was told of"
NAMES = (_CHOICES, _PAGE)  # keys of the session that hold a page's choices
_MOST = 64  # parameters that an address may contain


@dataclass
class Choices:
    """The choices of one page in a session, by parameter.

    Attributes:
        set: Texts that no control has read yet.
        shown: Defaults of the controls that have been drawn, which hold their values.
        owners: What a choice belongs to, as a number.
    """

    set: dict[str, Texts] = field(default_factory=dict)
    shown: dict[str, object] = field(default_factory=dict)
    owners: dict[str, int] = field(default_factory=dict)

    def texts(self, key: str) -> Texts:
        """Return the texts of a choice; none if it is at its default."""
        if key in self.set:
            return self.set[key]
        if key not in self.shown or (value := st.session_state.get(key)) is None or value == self.shown[key]:
            return ()
        return texts_of(value)

    def put(self, key: str, texts: Texts) -> None:
        """Set the texts that the control of a choice reads next; without any, it is reset to its default."""
        if key in self.shown:
            st.session_state.pop(key, None)
        self.set.pop(key, None)
        if texts:
            self.set[key] = texts


def enter(page: str) -> None:
    """Begin the page of that name, with the parameters of the browser's address."""
    state = st.session_state
    state[_PAGE] = state[_TOLD] = page
    state[_NAMES] = {**state.get(_NAMES, {}), page_hash(): page}
    if (arrived := state.pop(_ARRIVED, None)) is not None:
        replace(page, arrived)
        state[_BROUGHT] = frozenset(arrived)


def replace(page: str, choices: Mapping[str, Texts]) -> None:
    """Replace all choices of a page, regardless of their owner."""
    for key in of_page(page).shown:
        st.session_state.pop(key, None)
    st.session_state[_CHOICES][page] = Choices(set=dict(choices))


def of_page(page: str) -> Choices:
    """Return the choices of a page in this session."""
    return st.session_state.setdefault(_CHOICES, {}).setdefault(page, Choices())


def current_page() -> str:
    """Return the name of the running page, or of the last one."""
    return st.session_state.get(_PAGE, "")


def left_for(page: str) -> str:
    """Return the page that the browser shows if it is another one than ``page``, and "" otherwise.

    A session begins with the page that the browser opened.
    """
    before = st.session_state.get(_TOLD, page)
    return before if before != page else ""


def turn_to(page: str) -> None:
    """Record that the browser is sent to this page."""
    st.session_state[_TOLD] = page


def take(parameters: Mapping[str, Sequence[str]]) -> None:
    """Hold the parameters of the browser's address until the page ``enter``s and adopts them."""
    st.session_state[_ARRIVED] = {name: tuple(values) for name, values in [*parameters.items()][:_MOST]}


def take_also(choices: Mapping[str, str]) -> None:
    """Add choices to the held parameters, for a link to a page that is now a part of another."""
    if choices:
        arrived = st.session_state.get(_ARRIVED) or {}
        st.session_state[_ARRIVED] = {**arrived, **{name: (value,) for name, value in choices.items()}}


def has_begun() -> bool:
    """Return whether the page has adopted the parameters of the browser's address."""
    return _ARRIVED not in st.session_state


def end() -> None:
    """End the page, which has used the parameters of the address; an interrupted run does not reach this."""
    st.session_state[_BROUGHT] = None


def is_restored() -> bool:
    """Return whether the browser has provided an address for this page, which then defines all choices."""
    return st.session_state.get(_BROUGHT) is not None


def is_brought(key: str) -> bool:
    """Return whether the value of a choice came with the browser's address for this page."""
    return key in (st.session_state.get(_BROUGHT) or ())


def choices(page: str = "") -> Mapping[str, Texts]:
    """Return the choices of ``page``, or of the page that runs or is about to run, for its address."""
    state = st.session_state
    if not page:
        if not has_begun():
            return state[_ARRIVED]
        page = state.get(_NAMES, {}).get(page_hash(), "")
    found = of_page(page)
    texts = {key: found.texts(key) for key in {**found.shown, **found.set}}
    return {key: each for key, each in texts.items() if each}


def values(key: str, *, page: str = "") -> Texts:
    """Return the strings of a choice on the running page or ``page``; none if it is at its default."""
    return of_page(page or current_page()).texts(key)


def show(key: str, default: object) -> None:
    """Let the control of a choice, which is drawn now, hold its value."""
    found = of_page(current_page())
    found.shown[key] = default
    found.set.pop(key, None)


def keep(key: str, texts: Sequence[str], *, page: str = "", adopted: bool = False, owner: object = None) -> None:
    """Set the strings of a choice; without any, it is reset to its default.

    ``adopted`` says that it was not made at its own control, and belongs to ``owner``, or to the control's owner when
    it is drawn.
    """
    found = of_page(page or current_page())
    found.put(key, tuple(texts))
    if adopted:
        found.owners.pop(key, None)
        if owner is not None:
            found.owners[key] = _name_of(owner)


def belongs_to(key: str, owner: object) -> None:
    """Reset a choice that was made for another ``owner``, e.g. another sentence.

    A choice from an address, or an ``adopted`` one, is assigned to the first owner.
    """
    found, new = of_page(current_page()), _name_of(owner)
    if found.owners.setdefault(key, new) != new:
        found.put(key, ())
        found.owners[key] = new


def texts_of(value: object) -> Texts:
    """Return the value of a control as strings for the URL."""
    if isinstance(value, list | tuple):
        return tuple(map(text_of, value)) or ("",)
    return () if value is None else (text_of(value),)


def text_of(value: object) -> str:
    """Return one value of a control as a string for the URL."""
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:.12g}" if isinstance(value, float) else str(value)


def _name_of(owner: object) -> int:
    """Return a number for an owner, which may be long, since a session keeps it."""
    return hash(repr(owner))
