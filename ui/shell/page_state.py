"""The reader's choices on each page; the session holds them, and the address is their copy.

A choice is kept as the strings of its URL parameter, e.g. ``("lines",)`` for ``attention_show=lines``; a
choice that is not kept is at its default. Widgets are set from here before they are drawn and report to here in their
callbacks (``ui.shell.choice``). A control that is not drawn therefore keeps its value, and the address of a page is
known before the page runs: ``navigation`` sends it when another page is opened.

An address that the browser provides (opened, typed, Back, Forward) replaces the choices of its page.
"""

from collections.abc import Mapping, Sequence

import streamlit as st

from ui.server.streamlit_private import page_hash

Texts = tuple[str, ...]

_CHOICES, _OWNERS = "page state: choices", "page state: owners"  # by page and parameter
_ARRIVED, _BROUGHT = "page state: arrived", "page state: brought"
_PAGE, _NAMES, _LAST = "page state: page", "page state: names", "page state: hash of the last page"
_TOLD = "page state: page that the browser was told of"
_MOST = 64  # parameters that an address may contain


def enter(page: str) -> None:
    """Begin the page of that name, with the parameters of the browser's address."""
    state = st.session_state
    state[_PAGE], state[_LAST], state[_TOLD] = page, page_hash(), page
    state[_NAMES] = {**state.get(_NAMES, {}), page_hash(): page}
    state.setdefault(_CHOICES, {})
    if (arrived := state.pop(_ARRIVED, None)) is not None:
        replace(page, arrived)
        state[_BROUGHT] = frozenset(arrived)


def replace(page: str, choices: Mapping[str, Texts]) -> None:
    """Replace all choices of a page, regardless of their owner."""
    state = st.session_state
    state[_CHOICES] = {**state.get(_CHOICES, {}), page: choices}
    state[_OWNERS] = {**state.get(_OWNERS, {}), page: {}}


def current_page() -> str:
    """Return the name of the running page, or of the last one."""
    return st.session_state.get(_PAGE, "")


def is_another_page() -> bool:
    """Return whether the reader has opened another page since the last run."""
    return st.session_state.get(_LAST, page_hash()) != page_hash()


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
    """Add choices to the held parameters, for a link whose page has moved to a part of another."""
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
    if page:
        return all_choices().get(page, {})
    if not has_begun():
        return state[_ARRIVED]
    page = state.get(_NAMES, {}).get(page_hash()) if is_another_page() else current_page()
    return all_choices().get(page, {})


def all_choices() -> Mapping[str, Mapping[str, Texts]]:
    """Return the choices by page and parameter."""
    return st.session_state.get(_CHOICES, {})


def values(key: str, *, page: str = "") -> Texts:
    """Return the strings of a choice on the running page or ``page``; none if it is at its default."""
    return all_choices().get(page or current_page(), {}).get(key, ())


def keep(key: str, texts: Sequence[str], *, page: str = "", adopted: bool = False, owner: object = None) -> None:
    """Set the strings of a choice; without any, it is reset to its default.

    ``adopted`` says that it was not made at its own control, and belongs to ``owner``, or to the control's owner when
    it is drawn.
    """
    page, state = page or current_page(), st.session_state
    others = {name: kept for name, kept in all_choices().get(page, {}).items() if name != key}
    state[_CHOICES] = {**all_choices(), page: {**others, key: tuple(texts)} if texts else others}
    if adopted:
        owners = {name: of for name, of in state.get(_OWNERS, {}).get(page, {}).items() if name != key}
        owners |= {} if owner is None else {key: _name_of(owner)}
        state[_OWNERS] = {**state.get(_OWNERS, {}), page: owners}


def belongs_to(key: str, owner: object) -> None:
    """Reset a choice that was made for another ``owner``, e.g. another sentence.

    A choice from an address, or an ``adopted`` one, is assigned to the first owner.
    """
    page, state = current_page(), st.session_state
    owners, new = state.get(_OWNERS, {}).get(page, {}), _name_of(owner)
    if owners.get(key) == new:
        return
    if key in owners:
        keep(key, ())
    state[_OWNERS] = {**state.get(_OWNERS, {}), page: {**owners, key: new}}


def _name_of(owner: object) -> int:
    """Return a number for an owner, which may be long, since a session keeps it."""
    return hash(repr(owner))
