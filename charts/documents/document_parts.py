"""Parts of a document: plain values, each of which ``document.html`` renders by the macro of its name.

The template escapes third-party text. Of Markdown only ``code``, **bold** and *italic* are supported, and only in the
parts that say so.
"""

import base64
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from pathlib import Path
from urllib.parse import urlsplit

import segno
from jinja2 import Environment, FileSystemLoader
from markupsafe import Markup

from charts.canvas.figure import CanvasFigure
from charts.toolkit.style import three_digits

_NODE_BREAK = ":color[]{}"  # what ui.words.texts.as_plain inserts
_HIDDEN = 0xF0000  # a private area of Unicode, for characters that are not Markdown
_MAX_QR_BYTES = 600  # a longer address would need a code as wide as the text
_MILLIMETRES = 0.5  # size of a module of the QR code, large enough for a phone to read from paper


class Part:
    """Everything that a document is made of."""

    def html(self) -> Markup:
        """Return the part as HTML, with all third-party text escaped."""
        return Markup(template(type(self).__name__)(self))


@cache
def template(name: str) -> Callable[..., str]:
    """Return a macro of ``document.html``."""
    folder = FileSystemLoader(Path(__file__).parent)
    environment = Environment(loader=folder, autoescape=True, trim_blocks=True, lstrip_blocks=True)
    environment.filters |= {
        "markdown": lambda text: Markup(markdown_html(text)),
        "digits": lambda number: three_digits(number) if isinstance(number, float) else number,
        "indices": lambda text: Markup(re.sub(r"_(\w)", r"<sub>\1</sub>", escape(text))),  # W_Q is W with the index Q
    }
    return getattr(environment.get_template("document.html").module, name)


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


def join_html(parts: Sequence[Part]) -> Markup:
    """Return the HTML of several parts, one after the other."""
    return Markup("").join(part.html() for part in parts)


@dataclass(frozen=True)
class Paragraph(Part):
    """One line of Markdown; ``kind`` is "" or "hint"."""

    text: str
    kind: str = ""


@dataclass(frozen=True)
class Link(Part):
    """An address, written out so that it can be read on paper; nothing if it is not a web address.

    ``code`` is the alternative text of a QR code beside it; without it there is no code.
    """

    address: str
    code: str = ""

    @property
    def is_web(self) -> bool:
        """Whether the address is that of a web page."""
        return urlsplit(self.address).scheme in ("http", "https")

    @property
    def drawn(self) -> Markup | None:
        """The QR code as SVG, if there is one."""
        if not self.code or len(self.address.encode()) > _MAX_QR_BYTES:
            return None
        code = segno.make(self.address, error="l", micro=False)
        return Markup(code.svg_inline(scale=_MILLIMETRES, unit="mm", light="#fff"))


@dataclass(frozen=True)
class Cards(Part):
    """Short words with a number below each: (words, number, whether it is pale)."""

    cards: Sequence[tuple[str, str, bool]]


@dataclass(frozen=True)
class Table(Part):
    """Rows of cells below ``headings``; the first cell of a row is its name, a float has three digits."""

    headings: Sequence[str]
    rows: Sequence[Sequence[object]]


@dataclass(frozen=True, eq=False)
class Drawing(Part):
    """An interactive figure of the canvas; a map's cells cannot be clicked."""

    figure: CanvasFigure

    @property
    def payload(self) -> str:
        """The bytes of the figure, as base64."""
        is_map = self.figure.metadata["kind"] == "map"
        figure = self.figure.with_metadata(still=True) if is_map else self.figure
        return base64.b64encode(figure.packed()).decode("ascii")


@dataclass(frozen=True)
class Figure(Part):
    """Cards or a table with a caption."""

    part: Part
    caption: str


@dataclass(frozen=True)
class Grid(Part):
    """Parts side by side; ``kind`` is "pair" (equal widths) or "task" (figure and question)."""

    parts: Sequence[Part]
    kind: str


@dataclass(frozen=True)
class Question(Part):
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


@dataclass(frozen=True)
class Exercises(Part):
    """Numbered exercises: (title in Markdown or "", parts)."""

    exercises: Sequence[tuple[str, Sequence[Part]]]


@dataclass(frozen=True)
class Blanks(Part):
    """Names, each followed by a line to write on."""

    names: Sequence[str]


@dataclass(frozen=True)
class SheetNumber:
    """One cell of a sheet of numbers; ``kind`` is "", "given" (a weight), "blank" (no text) or "masked"."""

    text: str
    kind: str = ""


@dataclass(frozen=True)
class SheetTable(Part):
    """A small table of numbers with its heading above; rows are pairs of a name and cells.

    ``W_Q`` in the heading is shown as W with the subscript Q.
    """

    heading: str
    columns: Sequence[str]
    rows: Sequence[tuple[str, Sequence[SheetNumber]]]


@dataclass(frozen=True)
class NumberSheet(Part):
    """Strips of small tables, printed on landscape pages.

    ``above`` are the parts before them, ``below`` those after them.
    """

    above: Sequence[Part]
    strips: Sequence[Sequence[SheetTable]]
    below: Sequence[Part] = ()
