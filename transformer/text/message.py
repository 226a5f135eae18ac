"""Parts of sentences for a reader: a value that fits into one, and similar names."""

import reprlib
from collections.abc import Iterable
from difflib import get_close_matches

_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = _SHORT.maxlong = 200


def short_repr(value: object) -> str:
    """Return ``repr(value)``, shortened to fit into a sentence."""
    return _SHORT.repr(value)


def did_you_mean(name: str, known: Iterable[str], *, otherwise: str) -> str:
    """Return the end of a sentence about an unknown name: a similar name, or ``otherwise``."""
    matches = get_close_matches(name, list(known), n=3)
    return f"did you mean {' or '.join(matches)}?" if matches else otherwise
