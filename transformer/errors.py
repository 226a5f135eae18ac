"""The errors that a user of the library is meant to read."""

from collections.abc import Iterable
from difflib import get_close_matches

from transformer.text.message import Message


class MessageError(ValueError):
    """An error whose text is a ``Message``: ``InputError("{name} is empty", name="sentence")``."""

    def __init__(self, template: str, /, **values: object) -> None:
        super().__init__(Message(template, **values))


class InputError(MessageError):
    """A text that the model cannot take. The message is a sentence for the person who typed it."""


class CheckpointError(MessageError):
    """A checkpoint directory that cannot be used. The message says what does not fit, with both values."""


class NotEnoughMemoryError(CheckpointError):
    """A model that is larger than the memory that is free; it may fit when something else has gone."""


class TraceFileError(MessageError):
    """A file that holds no whole trace. The message says what is wrong with it."""


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
