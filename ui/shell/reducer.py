"""The reducer from actions to state: one pure function, ``reduce``, for all figures of all pages.

``send`` is the callback of every figure: it reduces the session's state and stores the new one before the page runs.
The address follows from the state (``focus.write_address``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from ui.shell import choice, page_state
from ui.shell import focus as shared_focus
from ui.shell.actions import (
    Action,
    Actions,
    OpenPage,
    Reveal,
    SelectHead,
    SelectLocation,
    SelectSentence,
    SelectToken,
    SetChoice,
)
from ui.shell.focus import Focus
from ui.shell.guidance.way import mark_opened
from ui.shell.navigation import go_to
from ui.shell.page_state import Texts


@dataclass(frozen=True)
class State:
    """The state of the view: the focus of all pages, and the choices by page and parameter.

    Attributes:
        owners: What choices made in this step belong to.
        reveals: Containers that receive the keyboard focus.
        opens: The page that is opened, if it differs from ``page``.
        lines: Lines about the focus.
    """

    focus: Focus
    page: str
    choices: Mapping[str, Mapping[str, Texts]]
    owners: Mapping[tuple[str, str], object] = ()
    reveals: tuple[str, ...] = ()
    opens: str = ""
    lines: tuple[str, ...] = ()

    def values(self, key: str) -> Texts:
        """Return the strings of a choice of the current page; none for its default."""
        return self.choices.get(self.page, {}).get(key, ())


Meaning = Callable[[State, Action], Actions]


def reduce(state: State, action: Action, means: Meaning | None = None) -> State:
    """Return the state after an action.

    Args:
        state: The current state.
        action: The reader's action.
        means: Meaning of the action where it occurs, e.g. of a cell: a pure function.

    Raises:
        TypeError: If the action has no meaning by itself and ``means`` is missing.
    """
    if means is not None:
        for following in means(state, action):
            state = reduce(state, following)
        return state
    match action:
        case SelectHead(layer, head, stack, kind):
            return _looking_at(state, stack=stack, kind=kind, layer=layer, head=head)
        case SelectToken(token, stack):
            kind = None if stack in (None, state.focus.stack) else "self"
            return _looking_at(state, stack=stack, kind=kind, token=token)
        case SelectLocation(stack, kind, layer, head, token):
            return _looking_at(state, stack=stack, kind=kind, layer=layer, head=head, token=token)
        case SelectSentence(sentence, token):
            return _looking_at(state, sentence=sentence, target="", pads=0, token=token)
        case SetChoice(key, values, page, owner):
            page = page or state.page
            others = {name: texts for name, texts in state.choices.get(page, {}).items() if name != key}
            own = {**others, key: choice.as_texts(values)} if values else others
            state = replace(state, choices={**state.choices, page: own})
            return replace(state, owners={**dict(state.owners), (page, key): owner})
        case OpenPage(page, location):
            state = state if location is None else reduce(state, location)
            return replace(state, opens=page)
        case Reveal(container):
            return replace(state, reveals=(*state.reveals, container))
    raise TypeError(f"{action} means nothing by itself; give the figure means=, a function of the state and the action")


def _looking_at(state: State, **values: object) -> State:
    """Return the state with a new focus; selecting the current stack again leaves the token unchanged."""
    new = {name: value for name, value in values.items() if value not in (None, getattr(state.focus, name))}
    focus, lines = shared_focus.with_changes(state.focus, **new)
    return replace(state, focus=focus, lines=(*state.lines, *lines))


def current() -> State:
    """Return the state of this browser session."""
    return State(shared_focus.current(), page_state.current_page(), page_state.all_choices())


def send(action: Action, means: Meaning | None = None) -> None:
    """Reduce the session's state, in a callback, before the page runs."""
    before = current()
    after = reduce(before, action, means)
    if after.opens:
        shared_focus.write_address_of(before.page)  # Back returns to the view as it was before the action
    if after.focus != before.focus:
        shared_focus.keep(after.focus, lines=after.lines)
    for (page, key), owner in dict(after.owners).items():
        choice.put(key, *after.choices.get(page, {}).get(key, ()), page=page, owner=owner)
    for container in after.reveals:
        mark_opened(container)
    if after.opens:
        go_to(after.opens)
