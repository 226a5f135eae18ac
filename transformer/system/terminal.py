"""Safe terminal output: text from a file must not move the cursor, change colours, or reorder a line."""

import re
import sys
from typing import Any, TextIO

# All but line feed and tab; then what sets the direction of writing (U+202E shows "gpj.exe" as "exe.jpg"), separators
# of lines and paragraphs, and halves of characters, by which Python stands for bytes of a name that are no text.
_CONTROLS = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")


def escape_controls(text: str) -> str:
    r"""Return the text with control characters in JSON notation: ``\u001b`` for the escape character.

    Line feeds and tabs stay.
    """
    return _CONTROLS.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def one_line(text: str) -> str:
    r"""Return the text on one line, with line feeds as ``\n``: a name must not look like a line of ours."""
    return escape_controls(text).replace("\n", "\\n").replace("\t", "\\t")


class _EscapedStream:
    """Text stream that escapes control characters and is otherwise the stream itself."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        start = "\r" if text.startswith("\r") else ""  # a carriage return, which progress bars use to redraw their line
        return self._stream.write(start + escape_controls(text[len(start) :]))

    def writelines(self, lines: list[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def escape_output() -> None:
    """Escape control characters in everything this process prints from now on, including errors and logs.

    Call it before a logger is set up, because a logger keeps the stream that it finds.
    """
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is not None and not isinstance(stream, _EscapedStream):
            setattr(sys, name, _EscapedStream(stream))
