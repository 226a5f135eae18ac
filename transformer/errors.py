"""The errors that a user of the library is meant to read."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


class InputError(ValueError):
    """A text that the model cannot take. The message is a sentence for the person who typed it."""


class CheckpointError(ValueError):
    """A checkpoint directory that cannot be used. The message says what does not fit, with both values."""


class TraceFileError(ValueError):
    """A file that holds no whole trace. The message says what is wrong with it."""


def did_you_mean(name: str, known: Iterable[str], *, otherwise: str) -> str:
    """The end of a sentence about an unknown name: what was probably meant, or ``otherwise`` where nothing is near."""
    near = get_close_matches(name, list(known), n=3)
    return f"did you mean {' or '.join(near)}?" if near else otherwise
