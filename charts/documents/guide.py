"""A document that leads through sections, with the drawings of the canvas in it and what a click on a cell says."""

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

import numpy as np

from charts.canvas.figure import CanvasFigure
from charts.canvas.module import packed_module
from charts.documents.markup import Cards, Markup, Paragraph, document, marked

_STYLE = Path(__file__).with_name("guide.css")
# The drawings travel deflated, a quarter of their size (charts/canvas/source/document.js goes on from here).
_START = """const packed = Uint8Array.from(atob(document.getElementById("script").textContent), (c) => c.charCodeAt(0));
const inflated = new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate")));
const script = Object.assign(document.createElement("script"), { type: "module" });
script.textContent = `${await inflated.text()}\\nshowDocument();`;
document.head.append(script);
"""


@dataclass(frozen=True, eq=False)
class Drawing:
    """A figure. ``lines`` [row][column]: what a click on a cell of a map says, as plain lines; none: nothing does."""

    figure: CanvasFigure
    lines: Sequence[Sequence[Sequence[str]]] = ()

    def html(self) -> str:
        figure = self.figure
        if self.lines:
            said = json.dumps(self.lines, ensure_ascii=False).encode("utf-8")
            figure = CanvasFigure(figure.metadata, {**figure.arrays, "lines": np.frombuffer(said, dtype=np.uint8)})
        elif figure.metadata["kind"] == "map":
            figure = figure.with_metadata(still=True)
        payload = base64.b64encode(figure.packed()).decode("ascii")
        return (
            f'<figure><script type="text/plain">{payload}</script><div class="drawn"></div>'
            f"{'<output hidden></output>' if self.lines else ''}</figure>"
        )


@dataclass(frozen=True)
class Views:
    """Several parts in one place, one of which is seen: (label, parts). ``name`` is theirs alone in the document."""

    name: str
    title: str
    views: tuple[tuple[str, tuple["Part", ...]], ...]

    def html(self) -> str:
        labels = "".join(
            f'<label><input type="radio" name="{escape(self.name)}" value="{place}"{" checked" if not place else ""}>'
            f"{escape(label)}</label>"
            for place, (label, _parts) in enumerate(self.views)
        )
        views = "".join(
            f'<div class="view"{" hidden" if place else ""}>{"".join(part.html() for part in parts)}</div>'
            for place, (_label, parts) in enumerate(self.views)
        )
        return f'<div><fieldset class="views"><legend>{escape(self.title)}</legend>{labels}</fieldset>{views}</div>'


Part = Drawing | Paragraph | Cards | Markup | Views


@dataclass(frozen=True)
class Section:
    """``name``: its place in the document, letters and ``_``. ``look_for``: what to notice, Markdown."""

    name: str
    title: str
    question: str
    parts: tuple[Part, ...]
    look_for: tuple[str, ...] = ()

    def html(self) -> str:
        look = "".join(f"<li>{marked(sentence)}</li>" for sentence in self.look_for)
        return (
            f'<section id="{escape(self.name)}"><h2>{escape(self.title)}</h2>'
            f'<p class="question">{escape(self.question)}</p>{f"<ul class=look>{look}</ul>" if look else ""}'
            f"{''.join(part.html() for part in self.parts)}</section>"
        )


def guide(
    title: str,
    sections: Sequence[Section],
    *,
    lead: Sequence[Part] = (),
    language: str = "en",
    words: Mapping[str, str] | None = None,
    said: Mapping[str, str] | None = None,
    script: str = "",
) -> str:
    """The whole file. ``words``: what the drawings say, from English to ``language``. ``said``: what the document and
    the files saved from it say about themselves. ``script``: JavaScript of our own."""
    links = "".join(f'<a href="#{escape(each.name)}">{escape(each.title)}</a>' for each in sections)
    shared = json.dumps({"words": dict(words or {}), "language": language, "view": dict(said or {})})
    body = (
        f"<header><h1>{escape(title)}</h1>{''.join(part.html() for part in lead)}</header>\n"
        f"<nav>{links}</nav>\n<main>\n"
        + "\n".join(section.html() for section in sections)
        + "\n</main>\n"
        + "".join(
            f'<script type="text/plain" id="{name}">{base64.b64encode(content).decode("ascii")}</script>\n'
            for name, content in (("shared", shared.encode("utf-8")), ("script", packed_module()))
        )
    )
    return document(
        title,
        body,
        language=language,
        style=_STYLE.read_text(encoding="utf-8"),
        script=_START + script,
        said=said,
    )
