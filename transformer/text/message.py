"""Translatable sentences: an English template, as in GNU gettext, that remembers its values.

``Message("{name} has {count} heads", name="en-fr", count=4)`` is an English text anywhere, and a catalogue that has its
template can translate it. Tools find every template by
the names ``Message``, ``N_`` and ``_`` (docs/translating.md).
"""

from __future__ import annotations

import re
import reprlib
from collections.abc import Callable, Iterable
from difflib import get_close_matches

__all__ = ["N_", "Message"]
_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = _SHORT.maxlong = 200
_COUNT = re.compile(r"\d{1,3}(?:,\d{3})+")


def N_(template: str) -> str:
    """Mark a template that is translated elsewhere, as in gettext."""
    return template


class Message(str):
    """An English sentence with its ``template`` and ``values``, which may be messages."""

    template: str
    values: dict[str, object]

    def __new__(cls, template: str, /, **values: object) -> Message:
        """Create the sentence of a template and its values; a message without new values stays the same."""
        if isinstance(template, Message) and not values:
            return template
        message = super().__new__(cls, template.format(**values) if values else template)
        message.template, message.values = template, values
        return message

    def __getnewargs_ex__(self) -> tuple[tuple[str], dict[str, object]]:
        return (self.template,), self.values

    def translated(self, gettext: Callable[[str], str], number: Callable[[str], str] = str) -> str:
        """Return the sentence with ``gettext(template)`` as its template, nested messages as well.

        ``number`` formats a count such as 65,537, which French would read as 65 and a half.
        """

        def inner(value: object) -> object:
            if isinstance(value, Message):
                return value.translated(gettext, number)
            return number(value) if isinstance(value, str) and _COUNT.fullmatch(value) else value

        said = gettext(self.template)
        return said.format(**{name: inner(value) for name, value in self.values.items()}) if self.values else said


def short_repr(value: object) -> str:
    """Return ``repr(value)``, shortened to fit into a sentence."""
    return _SHORT.repr(value)


def did_you_mean(name: str, known: Iterable[str], *, otherwise: str) -> str:
    """Return the end of a sentence about an unknown name: a similar name, or ``otherwise``."""
    match get_close_matches(name, list(known), n=3):
        case []:
            return otherwise
        case [one]:
            return f"did you mean {one}?"
        case [one, two]:
            return f"did you mean {one} or {two}?"
        case [one, two, three]:
            return f"did you mean {one} or {two} or {three}?"
