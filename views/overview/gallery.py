"""A gallery: the living picture of many sentences as a folder of pages that needs no server."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from html import escape
from pathlib import Path

import transformer
from charts.documents.markup import document
from transformer.config import PictureConfig
from transformer.errors import InputError
from transformer.predictions.sentence_flow import layers_within, sentence_flow
from ui.shell.focus import Focus
from ui.show.living_picture import flow_figure
from ui.words.catalogues import browser_words
from ui.words.texts import language, page_text

MAX_INSIDE = 1_000_000  # numbers of unfolded layers a page, four bytes each
_STYLE = """
.gallery { display: grid; grid-template-columns: repeat(auto-fill, minmax(24rem, 1fr)); gap: 1.25rem; padding: 0; }
.gallery li { list-style: none; }
.gallery a { display: block; color: inherit; text-decoration: none; overflow: hidden; }
.gallery a { border: 1px solid #8886; border-radius: 0.5rem; }
.gallery a:hover, .gallery a:focus-visible { border-color: #0B63A5; }
.gallery .seen { display: block; height: 14rem; overflow: hidden; pointer-events: none; }
.gallery iframe { width: 64rem; height: 46rem; border: 0; transform: scale(0.43); transform-origin: 0 0; }
.gallery b, .gallery small { display: block; padding: 0 0.75rem; }
.gallery small { padding-bottom: 0.6rem; opacity: 0.75; }
"""


@dataclass(frozen=True)
class Entry:
    """One page: ``sentence`` through ``checkpoint`` (a folder), with its ``answer`` where one is given."""

    checkpoint: str
    sentence: str
    answer: str | None = None


def read_entries(file: Path) -> tuple[Entry, ...]:
    """What a gallery shows, from a TOML file: ``[[page]]`` with ``checkpoint``, ``sentence`` and perhaps ``answer``.

    Raises ``InputError`` for a file that says something else.
    """
    try:
        pages = tomllib.loads(file.read_text(encoding="utf-8")).get("page")
    except (OSError, ValueError) as error:
        raise InputError("{file} cannot be read: {problem}", file=file, problem=error) from error
    if not isinstance(pages, list) or not pages:
        raise InputError("{file} has no [[page]]; each needs a checkpoint and a sentence", file=file)
    return tuple(_entry(file, page) for page in pages)


def _entry(file: Path, page: object) -> Entry:
    fields = {"checkpoint", "sentence", "answer"}
    texts = isinstance(page, Mapping) and all(isinstance(value, str) for value in page.values())
    if not texts or not {"checkpoint", "sentence"} <= page.keys() <= fields:
        raise InputError("{file}: a [[page]] needs a checkpoint and a sentence, and may have an answer", file=file)
    return Entry(**page)


def write_gallery(entries: tuple[Entry, ...], folder: Path) -> Iterator[Path]:
    """Writes a page for each of ``entries`` and the index, and says which file is there.

    Raises ``CheckpointError`` and ``InputError`` as ``transformer.load`` and ``transformer.trace`` do.
    """
    folder.mkdir(parents=True, exist_ok=True)
    loaded: dict[str, transformer.Checkpoint] = {}
    shown = []
    for number, entry in enumerate(entries, start=1):
        checkpoint = loaded.get(entry.checkpoint) or transformer.load(entry.checkpoint)
        loaded[entry.checkpoint] = checkpoint
        trace = transformer.trace(checkpoint, entry.sentence, entry.answer)
        stack = trace.stacks[-1]
        middle = trace.n_layers(stack) // 2
        focus = Focus(checkpoint=checkpoint.name, sentence=entry.sentence, stack=stack, layer=middle)
        flow = sentence_flow(trace, inside=layers_within(trace, MAX_INSIDE))
        figure = flow_figure(flow, trace, focus, links=False)
        words = {"words": browser_words(), "language": language()} if browser_words() else {}
        title = " ".join(entry.sentence.split())
        if isinstance(checkpoint.config, PictureConfig):  # its signs would be no title
            title = trace.text
        file = folder / f"{number:02}-{checkpoint.name}.html"
        figure.with_metadata(title=title, **words).save(file)
        shown.append((file.name, title, trace.text, checkpoint.name))
        yield file
    index = folder / "index.html"
    index.write_text(_index(shown), encoding="utf-8")
    yield index


def _index(shown: list[tuple[str, str, str, str]]) -> str:
    items = "".join(
        f'<li><a href="{escape(file)}"><span class="seen"><iframe src="{escape(file)}" loading="lazy" tabindex="-1" '
        f'title="{escape(title)}" aria-hidden="true"></iframe></span><b>{escape(title)}</b>'
        f"<small>{escape(' '.join(text.split()))} · {escape(name)}</small></a></li>"
        for file, title, text, name in shown
    )
    title = page_text("overview")["gallery"]
    body = f'<main><h1>{escape(title)}</h1><ul class="gallery">{items}</ul></main>'
    page = document(title, body, language=language(), style=_STYLE)
    return page.replace("img-src data: blob:", "img-src data: blob:; frame-src 'self' file:")  # its own pages, small
