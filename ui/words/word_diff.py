"""The words in which two texts differ, as Markdown: removed ones struck out, new ones blue."""

from collections.abc import Iterable, Sequence

from transformer.predictions.comparison import Piece
from ui.words.texts import as_plain

_BESIDE = 3  # unchanged words that stay beside a change
_MARKS = {"same": "{}", "removed": ":orange[~~{}~~]", "added": ":blue[**{}**]"}


def marked_text(pieces: Iterable[Piece]) -> str:
    """Return all pieces as one line of Markdown."""
    shown, begun = "", False
    for piece in pieces:
        if shown and not begun and piece.fate == "same":
            shown += " "  # the first word of the new text has no space before it, but a removed first word does
        shown += mark(piece)
        begun = begun or piece.fate != "removed"
    return shown.strip()


def mark(piece: Piece) -> str:
    """Return a piece as Markdown; its spaces are outside of the mark, or Markdown would not recognise it."""
    space = " " if piece.fate != "same" or piece.text[:1].isspace() else ""
    return space + _MARKS[piece.fate].format(as_plain(" ".join(piece.text.split())))


def around_changes(pieces: Sequence[Piece]) -> list[Piece]:
    """Return the pieces with "…" in place of unchanged words that are not beside a change."""
    found = []
    for index, piece in enumerate(pieces):
        words = piece.text.split()
        first = _BESIDE if index else 0
        last = _BESIDE if index < len(pieces) - 1 else 0
        if piece.fate == "same" and len(words) > first + last + 1:
            space = " " if piece.text[:1].isspace() else ""
            words = [*words[:first], "…", *words[len(words) - last :]]
            piece = piece._replace(text=space + " ".join(words))
        found.append(piece)
    return found
