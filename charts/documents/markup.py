"""What every document is made of: its frame, and parts in HTML. A document is one file that asks no host for anything.

What a person may have typed is escaped here; of Markdown only ``code``, **bold** and *italic* are understood.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from charts.toolkit.style import three_digits

_HERE = Path(__file__).parent
# As in charts/canvas/page.html: no host is asked for anything, whatever somebody typed.
_POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:"
_NODE_BREAK = ":color[]{}"  # of ui.words.texts.as_plain
_HIDDEN = 0xF0000  # a private area of Unicode, for characters that must not be read as Markdown


def document(
    title: str,
    body: str,
    *,
    paper: bool = False,
    language: str = "en",
    style: str = "",
    script: str = "",
    said: Mapping[str, str] | None = None,
) -> str:
    """The whole file. ``title`` is plain text. ``paper``: it is printed, and has no colours for the dark.

    ``body`` is HTML, ``style`` CSS and ``script`` JavaScript of our own: what a person may have typed is escaped in
    them already. ``said`` (title, checkpoint, sentence …) stands in the head as ``<meta name="glassformer:…">``.

    Raises ``ValueError`` for a style or script that would end its own element.
    """
    for name, code in (("style", style), ("script", script)):
        if f"</{name}" in code.lower():
            raise ValueError(f"the {name} of a document holds </{name}, which would end it; write it another way")
    common = _HERE / ("paper.css" if paper else "document.css")
    tags = "".join(
        f'<meta name="glassformer:{escape(name)}" content="{escape(text)}">\n' for name, text in (said or {}).items()
    )
    scripted = f'<script type="module">\n{script}\n</script>\n' if script else ""
    return (
        f'<!doctype html>\n<html lang="{escape(language)}">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        f"<title>{escape(title)}</title>\n{tags}"
        f"<style>\n{common.read_text(encoding='utf-8')}{style}</style>\n</head>\n"
        f"<body>\n{body}\n{scripted}</body>\n</html>\n"
    )


def marked(text: str) -> str:
    """Markdown of one line as HTML: escaped first, so that nothing in it can be markup but what is put in here.

    What ``ui.words.texts.as_plain`` has escaped stands for itself: a character after a backslash, white space as a
    character reference, and nothing where it keeps Streamlit from making a link.
    """
    hidden = re.sub(r"\\([!-/:-@\[-`{-~])", lambda found: chr(_HIDDEN + ord(found[1])), text)
    hidden = re.sub(r"&#(9|10|13|32);", lambda found: chr(int(found[1])), hidden.replace(_NODE_BREAK, ""))
    pieces = re.split(r"`([^`]+)`", escape(hidden))
    for place, piece in enumerate(pieces):
        if place % 2:
            pieces[place] = f"<code>{piece}</code>"
        else:
            bold = re.sub(r"\*\*(.+?)\*\*", r"<b>\1</b>", piece)
            pieces[place] = re.sub(r"\*(\S(?:.*?\S)?)\*", r"<i>\1</i>", bold)
    return "".join(escape(chr(ord(c) - _HIDDEN)) if _HIDDEN <= ord(c) < _HIDDEN + 128 else c for c in "".join(pieces))


@dataclass(frozen=True)
class Paragraph:
    """One line of Markdown. ``kind``: "", "formula" or "hint"."""

    text: str
    kind: str = ""

    def html(self) -> str:
        return f"<p{f' class={self.kind}' if self.kind else ''}>{marked(self.text)}</p>"


@dataclass(frozen=True)
class Cards:
    """Short words with a number below each: (words, number, whether it is pale)."""

    cards: tuple[tuple[str, str, bool], ...]

    def html(self) -> str:
        drawn = (
            f"<li{' class=special' if special else ''}><bdi>{escape(words)}</bdi><small>{escape(number)}</small></li>"
            for words, number, special in self.cards
        )
        return f'<ul class="tokens">{"".join(drawn)}</ul>'


@dataclass(frozen=True)
class Markup:
    """HTML of our own, escaped already."""

    markup: str

    def html(self) -> str:
        return self.markup


def table(headings: Sequence[str], rows: Sequence[Sequence[object]], *, named: bool = False) -> Markup:
    """One row of cells for each of ``rows``, the first of which is the row's name where they are ``named``; a float is
    written with three significant digits."""
    head = "".join(f"<th>{escape(heading)}</th>" for heading in headings)
    names = [f"<th>{escape(str(row[0]))}</th>" if named else "" for row in rows]
    cells = ["".join(map(_cell, row[1:] if named else row)) for row in rows]
    body = "".join(f"<tr>{name}{row}</tr>" for name, row in zip(names, cells, strict=True))
    return Markup(f"<table>{f'<thead><tr>{head}</tr></thead>' if head else ''}<tbody>{body}</tbody></table>")


def folded(title: str, lines: Sequence[str]) -> Markup:
    """A list that opens on a click or a key."""
    items = "".join(f"<li><bdi>{escape(line)}</bdi></li>" for line in lines)
    return fold(title, [Markup(f"<ol>{items}</ol>")])


def fold(title: str, parts: Sequence[Paragraph | Markup]) -> Markup:
    """What opens on a click or a key."""
    return Markup(f"<details><summary>{escape(title)}</summary>{''.join(part.html() for part in parts)}</details>")


def _cell(cell: object) -> str:
    if isinstance(cell, float):
        return f'<td class="number">{escape(three_digits(cell))}</td>'
    if isinstance(cell, int):
        return f'<td class="number">{cell}</td>'
    return f"<td><bdi>{escape(str(cell))}</bdi></td>"
