"""The few texts that every page's own tests try; all of them are in ``tests/kinds_of_text.py``."""

from __future__ import annotations

from tests.kinds_of_text import KINDS_OF_TEXT

NASTY = tuple(
    KINDS_OF_TEXT[name]
    for name in ("emoji", "markup", "lines and tabs", "Arabic", "60 equal letters", "braces and percent")
)
EMPTY = (KINDS_OF_TEXT["empty"], KINDS_OF_TEXT["blank"])
TOO_LONG = KINDS_OF_TEXT["too long"]
