"""Parts of a document: plain values, each of which renders itself as HTML.

Third-party text is escaped here, once, by the part that holds it. Of Markdown only ``code``, **bold** and *italic* are
supported, and only in the parts that say so.
"""

import base64
import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Protocol
from urllib.parse import urlsplit

import segno

from charts.canvas.figure import CanvasFigure
from charts.toolkit.style import three_digits

_NODE_BREAK = ":color[]{}"  # what ui.words.texts.as_plain inserts
_HIDDEN = 0xF0000  # a private area of Unicode, for characters that are not Markdown
_WRITING_LINES = 3  # lines for a written answer
_MAX_QR_BYTES = 600  # a longer address would need a code as wide as the text
_MILLIMETRES = 0.5  # size of a module of the QR code, large enough for a phone to read from paper


class Part(Protocol):
    """Protocol of everything that a document is made of."""

    def html(self) -> str:
        """Return the part as HTML, with all third-party text escaped."""


def markdown_html(text: str) -> str:
    """Return one line of Markdown as HTML.

    The text is escaped first, so that the only markup in it is what is added here. What ``ui.words.texts.as_plain`` has
    escaped is restored: a character after a backslash, white space as a character reference, and nothing where it keeps
    Streamlit from making a link.
    """
    hidden = re.sub(r"\\([!-/:-@\[-`{-~])", lambda found: chr(_HIDDEN + ord(found[1])), text)
    hidden = re.sub(r"&#(\d{1,5});", lambda found: chr(int(found[1])), hidden.replace(_NODE_BREAK, ""))
    pieces = re.split(r"`([^`]+)`", escape(hidden))
    for place, piece in enumerate(pieces):
        if place % 2:
            pieces[place] = f"<code>{piece}</code>"
        else:
            bold = re.sub(r"\*\*(.+?)\*\*", r"<b>\1</b>", piece)
            pieces[place] = re.sub(r"\*(\S(?:.*?\S)?)\*", r"<i>\1</i>", bold)
    return "".join(escape(chr(ord(c) - _HIDDEN)) if _HIDDEN <= ord(c) < _HIDDEN + 128 else c for c in "".join(pieces))


def join_html(parts: Sequence[Part]) -> str:
    """Return the HTML of several parts, one after the other."""
    return "".join(part.html() for part in parts)


# --- text ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Paragraph:
    """One line of Markdown; ``kind`` is "" or "hint"."""

    text: str
    kind: str = ""

    def html(self) -> str:
        """Return the paragraph as HTML."""
        return f"<p{f' class={self.kind}' if self.kind else ''}>{markdown_html(self.text)}</p>"


@dataclass(frozen=True)
class Link:
    """An address, written out so that it can be read on paper; empty if it is not a web address.

    ``code`` is the alternative text of a QR code beside it; without it there is no code.
    """

    address: str
    code: str = ""

    def html(self) -> str:
        """Return the link as HTML."""
        if urlsplit(self.address).scheme not in ("http", "https"):
            return ""
        shown = escape(self.address)
        code = ""
        if self.code and len(self.address.encode()) <= _MAX_QR_BYTES:
            drawn = segno.make(self.address, error="l", micro=False).svg_inline(
                scale=_MILLIMETRES, unit="mm", light="#fff"
            )
            code = f'<span class="qr" role="img" aria-label="{escape(self.code)}">{drawn}</span>'
        return f'<p class="link">{code}<a href="{shown}">{shown}</a></p>'


@dataclass(frozen=True)
class Cards:
    """Short words with a number below each: (words, number, whether it is pale)."""

    cards: Sequence[tuple[str, str, bool]]

    def html(self) -> str:
        """Return the cards as HTML."""
        drawn = (
            f"<li{' class=special' if special else ''}><bdi>{escape(words)}</bdi><small>{escape(number)}</small></li>"
            for words, number, special in self.cards
        )
        return f'<ul class="tokens">{"".join(drawn)}</ul>'


@dataclass(frozen=True)
class Table:
    """Rows of cells below ``headings``; the first cell of a row is its name, a float has three digits."""

    headings: Sequence[str]
    rows: Sequence[Sequence[object]]

    def html(self) -> str:
        """Return the table as HTML."""
        head = "".join(f'<th scope="col">{escape(heading)}</th>' for heading in self.headings)
        body = "".join(
            f'<tr><th scope="row"><bdi>{escape(str(name))}</bdi></th>{"".join(map(_cell, cells))}</tr>'
            for name, *cells in self.rows
        )
        return (
            f'<div class="scroll"><table>{f"<thead><tr>{head}</tr></thead>" if head else ""}'
            f"<tbody>{body}</tbody></table></div>"
        )


def _cell(cell: object) -> str:
    if isinstance(cell, float):
        return f'<td class="number">{escape(three_digits(cell))}</td>'
    if isinstance(cell, int):
        return f'<td class="number">{cell}</td>'
    return f"<td><bdi>{escape(str(cell))}</bdi></td>"


# --- figures ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Drawing:
    """An interactive figure of the canvas; a map's cells cannot be clicked."""

    figure: CanvasFigure

    def html(self) -> str:
        """Return the figure as HTML."""
        figure = self.figure
        if figure.metadata["kind"] == "map":
            figure = figure.with_metadata(still=True)
        payload = base64.b64encode(figure.packed()).decode("ascii")
        return f'<figure class="drawing"><script type="text/plain">{payload}</script><div class="drawn"></div></figure>'


@dataclass(frozen=True)
class Figure:
    """Cards or a table with a caption."""

    part: Part
    caption: str

    def html(self) -> str:
        """Return the figure as HTML."""
        return f"<figure>{self.part.html()}<figcaption>{escape(self.caption)}</figcaption></figure>"


# --- parts of parts -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Grid:
    """Parts side by side; ``kind`` is "pair" (equal widths) or "task" (figure and question)."""

    parts: Sequence[Part]
    kind: str

    def html(self) -> str:
        """Return the grid as HTML."""
        return f'<div class="{self.kind}">{"".join(f"<div>{part.html()}</div>" for part in self.parts)}</div>'


# --- exercises ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Question:
    """A question in Markdown with space for its answer or, if ``solved``, with its ``answer``.

    ``right`` is the index of the correct one of ``choices``, or ``None`` for a written answer. ``feedback`` says in
    the solution what is wrong with each choice. ``why`` is plain text below the choices.
    """

    text: str
    choices: Sequence[str] = ()
    right: int | None = None
    feedback: Sequence[str] = ()
    answer: str = ""
    solved: bool = False
    why: str = ""

    def html(self) -> str:
        """Return the question as HTML."""
        rows = "".join(self._choice(place, choice) for place, choice in enumerate(self.choices))
        choices = f'<ul class="choices">{rows}</ul>' if rows else ""
        if self.solved:
            room = f'<p class="answer">{markdown_html(self.answer)}</p>'
        elif self.choices:
            room = f'<div class="line">{escape(self.why)}</div>'
        else:
            room = '<div class="line"></div>' * _WRITING_LINES
        return f'<p class="question">{markdown_html(self.text)}</p>{choices}{room}'

    def _choice(self, place: int, choice: str) -> str:
        if self.solved and place == self.right:
            return f"<li>☒ <b>{markdown_html(choice)}</b></li>"
        about = self.feedback[place] if self.solved and self.feedback else ""
        return f"<li>☐ {markdown_html(choice)}{f' <i>– {markdown_html(about)}</i>' if about else ''}</li>"


@dataclass(frozen=True)
class Exercises:
    """Numbered exercises: (title in Markdown or "", parts)."""

    exercises: Sequence[tuple[str, Sequence[Part]]]

    def html(self) -> str:
        """Return the exercises as HTML."""
        items = "".join(
            f"<li>{f'<h2>{markdown_html(title)}</h2>' if title else ''}{join_html(parts)}</li>\n"
            for title, parts in self.exercises
        )
        return f'<ol class="exercises">\n{items}</ol>'


@dataclass(frozen=True)
class Blanks:
    """Names, each followed by a line to write on."""

    names: Sequence[str]

    def html(self) -> str:
        """Return the blanks as HTML."""
        return f'<p class="who">{" ".join(f"{escape(name)} <i></i>" for name in self.names)}</p>'


# --- sheets of numbers --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SheetNumber:
    """One cell of a sheet of numbers; ``kind`` is "", "given" (a weight), "blank" or "masked"."""

    text: str
    kind: str = ""

    def html(self) -> str:
        """Return the cell as HTML; a blank has no text."""
        kind = f" class={self.kind}" if self.kind else ""
        return f"<td{kind}>{'' if self.kind == 'blank' else escape(self.text)}</td>"


@dataclass(frozen=True)
class SheetTable:
    """A small table of numbers with its heading above; rows are pairs of a name and cells.

    ``W_Q`` in the heading is W with the index Q.
    """

    heading: str
    columns: Sequence[str]
    rows: Sequence[tuple[str, Sequence[SheetNumber]]]

    def html(self) -> str:
        """Return the table as HTML."""
        head = "".join(f'<th scope="col">{escape(name)}</th>' for name in self.columns)
        body = "".join(
            f'<tr><th scope="row">{escape(name)}</th>{"".join(cell.html() for cell in cells)}</tr>'
            for name, cells in self.rows
        )
        above = f"<thead><tr><td></td>{head}</tr></thead>" if self.columns else ""
        heading = re.sub(r"_(\w)", r"<sub>\1</sub>", escape(self.heading))
        return f"<table><caption>{heading}</caption>{above}<tbody>{body}</tbody></table>"


@dataclass(frozen=True)
class NumberSheet:
    """Strips of small tables, which begin a page of landscape format.

    ``above`` are the parts before them, ``below`` those after them.
    """

    above: Sequence[Part]
    strips: Sequence[Sequence[SheetTable]]
    below: Sequence[Part] = ()

    def html(self) -> str:
        """Return the sheet as HTML."""
        strips = "".join(f'<div class="strip">{join_html(tables)}</div>' for tables in self.strips)
        return f'<section class="numbers">{join_html(self.above)}{strips}{join_html(self.below)}</section>'
