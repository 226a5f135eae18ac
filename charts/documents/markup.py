"""Markdown of one line as HTML: ``code``, **bold** and *italic*, and nothing else."""

import re
from html import escape

_HIDDEN = 0xF0000  # a private area of Unicode, for characters that must not be read as Markdown


def marked(text: str) -> str:
    """Markdown of one line as HTML: escaped first, so that nothing in it can be markup but what is put in here.

    A character after a backslash stands for itself (``ui.words.texts.as_plain``).
    """
    hidden = re.sub(r"\\([!-/:-@\[-`{-~])", lambda found: chr(_HIDDEN + ord(found[1])), text)
    pieces = re.split(r"`([^`]+)`", escape(hidden))
    for place, piece in enumerate(pieces):
        if place % 2:
            pieces[place] = f"<code>{piece}</code>"
        else:
            bold = re.sub(r"\*\*(.+?)\*\*", r"<b>\1</b>", piece)
            pieces[place] = re.sub(r"\*(\S(?:.*?\S)?)\*", r"<i>\1</i>", bold)
    return "".join(escape(chr(ord(c) - _HIDDEN)) if _HIDDEN <= ord(c) < _HIDDEN + 128 else c for c in "".join(pieces))
