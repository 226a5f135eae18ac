"""A view that an instructor opens for everybody, as one text: page, focus and the page's choices.

A view contains no language and no presenter's mode, which each reader keeps.
"""

from collections.abc import Mapping
from dataclasses import asdict
from typing import NoReturn
from urllib.parse import urlencode

from ui.shell import address, page_state
from ui.shell import focus as shared_focus
from ui.shell.focus import CAME_FROM, Focus, address_of
from ui.shell.guidance.before_lesson import read_parameters
from ui.shell.navigation import pages
from ui.shell.page_state import Texts

_READERS_OWN = ("language", "presenter", CAME_FROM)


def current_view() -> tuple[str, str]:
    """Return the page of this session and the parameters of its view."""
    page = page_state.current_page()
    return page, write_view(shared_focus.current(), page_state.all_choices().get(page, {}))


def write_view(focus: Focus, choices: Mapping[str, Texts]) -> str:
    """Return the parameters of a view."""
    found = {name: [value] for name, value in address_of(focus, whole=True).items() if name not in _READERS_OWN}
    return urlencode({**found, **choices}, doseq=True)


def focus_of(query: str) -> Focus:
    """Return the focus of a view's parameters."""
    return read_parameters(query, without=_READERS_OWN)[0]


def open_view(page: str, query: str) -> NoReturn:
    """Open a view, as its address would, but keep language and presenter's mode. This ends the run."""
    focus, choices = read_parameters(query, without=_READERS_OWN)
    changes = {name: value for name, value in asdict(focus).items() if name not in _READERS_OWN}
    shared_focus.change(**changes)
    page_state.take(choices)
    existing = pages()
    name = page if page in existing else next(iter(existing))
    address.open_page(name, existing[name])
