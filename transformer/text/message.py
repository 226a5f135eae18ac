"""Translatable sentences: an English template, as in GNU gettext, that remembers its values.

``Message("{name} has {count} heads", name="en-fr", count=4)`` is an English text anywhere, and a catalogue that has its
template can translate it. Translation tools find every template by the names ``Message``, ``N_``, ``_`` and those of
the errors (docs/translating.md).
"""

from __future__ import annotations

import re
import reprlib
from collections.abc import Callable, Iterable
from difflib import get_close_matches

from transformer.errors import MessageError, text_of
from transformer.text.foreign_messages import N_, found_template

__all__ = ["N_", "Message"]
_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = _SHORT.maxlong = 200
_COUNT = re.compile(r"\d{1,3}(?:,\d{3})+")


class Message(str):
    """An English sentence with its ``template`` and ``values``, which may be messages or errors."""

    template: str
    values: dict[str, object]

    def __new__(cls, template: str, /, **values: object) -> Message:
        """Create the sentence of a template and its values; a message without new values stays the same."""
        if isinstance(template, Message) and not values:
            return template
        values = {name: message_of(value) if isinstance(value, Exception) else value for name, value in values.items()}
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

    def replaced(self, old: str, new: str) -> Message:
        """Return the same message with ``new`` instead of ``old`` in all values.

        If ``new`` is a message, only values that equal ``old`` are replaced.
        """

        def value_for(value: object) -> object:
            if isinstance(value, Message):
                return value.replaced(old, new)
            if isinstance(new, Message):
                return new if str(value) == old else value
            return str(value).replace(old, new)

        return Message(self.template, **{name: value_for(value) for name, value in self.values.items()})


def short_repr(value: object) -> str:
    """Return ``repr(value)``, shortened to fit into a sentence."""
    return _SHORT.repr(value)


def message_of(error: Exception) -> str:
    """Return the text of an error, as a ``Message`` if possible; its class name if it is empty."""
    if isinstance(error, MessageError):
        return Message(error.template, **error.values)
    return foreign_message(text_of(error))


def foreign_message(sentence: str) -> str:
    """Return the sentence of another library as a message if its template is known, else unchanged."""
    if (found := found_template(sentence)) is None:
        return sentence
    template, values = found
    return Message(template, **{name: foreign_message(v) if name == "problem" else v for name, v in values.items()})


def did_you_mean(name: str, known: Iterable[str], *, otherwise: str) -> str:
    """Return the end of a sentence about an unknown name: a similar name, or ``otherwise``."""
    match get_close_matches(name, list(known), n=3):
        case []:
            return otherwise
        case [one]:
            return Message("did you mean {one}?", one=one)
        case [one, two]:
            return Message("did you mean {one} or {two}?", one=one, two=two)
        case [one, two, three]:
            return Message("did you mean {one} or {two} or {three}?", one=one, two=two, three=three)
