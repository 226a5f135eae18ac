"""Sentences that a reader sees: an English template, as in GNU gettext, that remembers what stands in it.

``Message("{name} has {count} heads", name="en-fr", count=4)`` reads as English everywhere a text does, and a catalogue
that knows its template says it in another language. The tools of translators find every template by the names
``Message``, ``N_``, ``_`` and those of the errors (docs/translating.md).
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
    """An English sentence with its ``template`` and ``values``, which may be messages or errors themselves."""

    template: str
    values: dict[str, object]

    def __new__(cls, template: str, /, **values: object) -> Message:
        if isinstance(template, Message) and not values:
            return template
        values = {name: message_of(value) if isinstance(value, Exception) else value for name, value in values.items()}
        message = super().__new__(cls, template.format(**values) if values else template)
        message.template, message.values = template, values
        return message

    def __getnewargs_ex__(self) -> tuple[tuple[str], dict[str, object]]:
        return (self.template,), self.values

    def translated(self, gettext: Callable[[str], str], number: Callable[[str], str] = str) -> str:
        """The sentence with ``gettext(template)`` in place of the English template, inner messages as well.

        ``number`` writes a count such as 65,537 for the reader: in French it would be 65 and a half.
        """

        def inner(value: object) -> object:
            if isinstance(value, Message):
                return value.translated(gettext, number)
            return number(value) if isinstance(value, str) and _COUNT.fullmatch(value) else value

        said = gettext(self.template)
        return said.format(**{name: inner(value) for name, value in self.values.items()}) if self.values else said

    def replaced(self, old: str, new: str) -> Message:
        """The same message with ``new`` for ``old`` in all values: whole ones, where ``new`` is a message."""

        def value_for(value: object) -> object:
            if isinstance(value, Message):
                return value.replaced(old, new)
            if isinstance(new, Message):
                return new if str(value) == old else value
            return str(value).replace(old, new)

        return Message(self.template, **{name: value_for(value) for name, value in self.values.items()})


def short_repr(value: object) -> str:
    """Return ``repr(value)`` as a sentence can hold it: long and deep values are cut."""
    return _SHORT.repr(value)


def message_of(error: Exception) -> str:
    """What an error says, as a ``Message`` where its template is known; its name if nothing."""
    if isinstance(error, MessageError):
        return Message(error.template, **error.values)
    return foreign_message(text_of(error))


def foreign_message(sentence: str) -> str:
    """The sentence of another library as a message where its template is known, else as it is."""
    if (found := found_template(sentence)) is None:
        return sentence
    template, values = found
    return Message(template, **{name: foreign_message(v) if name == "problem" else v for name, v in values.items()})


def did_you_mean(name: str, known: Iterable[str], *, otherwise: str) -> str:
    """The end of a sentence about an unknown name: what was probably meant, or ``otherwise`` where nothing is near."""
    match get_close_matches(name, list(known), n=3):
        case []:
            return otherwise
        case [one]:
            return Message("did you mean {one}?", one=one)
        case [one, two]:
            return Message("did you mean {one} or {two}?", one=one, two=two)
        case [one, two, three]:
            return Message("did you mean {one} or {two} or {three}?", one=one, two=two, three=three)
