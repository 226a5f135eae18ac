"""A gallery: the living pictures of many sentences as a folder of pages that needs no server."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import transformer
from charts.documents.document_parts import Drawing, Grid, Paragraph, Preview
from transformer.disk.plain_files import parse_toml, read_plain_text
from transformer.disk.whole_files import write_text
from transformer.errors import InputError
from transformer.predictions.living_picture_numbers import layers_within, living_picture_numbers
from transformer.runs.traces import Trace
from ui.shell.focus import Focus
from ui.show.documents import document_of
from ui.show.living_picture import living_picture_figure
from ui.words.texts import as_plain, page_text

MAX_INSIDE = 1_000_000  # numbers of expanded layers per page, four bytes each


@dataclass(frozen=True)
class Entry:
    """One page: ``sentence`` through ``checkpoint`` (a folder), with its ``answer`` if one is given."""

    checkpoint: str
    sentence: str
    answer: str | None = None


def read_entries(file: Path) -> tuple[Entry, ...]:
    """Read a gallery from TOML: each ``[[page]]`` has ``checkpoint``, ``sentence``, maybe ``answer``.

    Raises ``InputError`` for any other content.
    """
    try:
        pages = parse_toml(read_plain_text(file)).get("page")
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
    """Write a page for each of ``entries`` and an index; yield the path of each file.

    Raises ``CheckpointError`` and ``InputError`` as ``transformer.load`` and ``transformer.trace`` do.
    """
    folder.mkdir(parents=True, exist_ok=True)
    loaded: dict[str, transformer.Checkpoint] = {}
    previews = []
    for number, entry in enumerate(entries, start=1):
        checkpoint = loaded.get(entry.checkpoint) or transformer.load(entry.checkpoint)
        loaded[entry.checkpoint] = checkpoint
        trace = transformer.trace(checkpoint, entry.sentence, entry.answer)
        title = " ".join(entry.sentence.split())
        if checkpoint.config.reads_images:  # the symbols of an image would be unreadable as a title
            title = trace.text
        caption = f"{' '.join(trace.text.split())} · {checkpoint.name}"
        file = folder / f"{number:02}-{checkpoint.name}.html"
        write_text(file, _page(trace, title, caption))
        previews.append(Preview(file.name, title, caption))
        yield file
    index = folder / "index.html"
    write_text(index, document_of(None, page_text("overview")["gallery"], [Grid(previews, "gallery")]))
    yield index


def _page(trace: Trace, title: str, caption: str) -> str:
    """Return the living picture of one sentence, from the middle of the last stack on."""
    stack = trace.stacks[-1]
    place = {"stack": stack, "layer": trace.n_layers(stack) // 2}
    focus = Focus(checkpoint=trace.checkpoint.name, sentence=trace.sentence, **place)
    picture = living_picture_numbers(trace, inside=layers_within(trace, MAX_INSIDE))
    drawing = Drawing(living_picture_figure(picture, trace, focus, links=False).with_metadata(title=title))
    about = {"sentence": trace.sentence, "target": trace.run.target or ""}
    return document_of(
        trace.checkpoint, title, [drawing], lead=[Paragraph(as_plain(caption))], about=about, kind="wide"
    )
