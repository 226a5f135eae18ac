"""The commands of ``python -m transformer`` that draw: they belong to the program, not to the library."""

import argparse
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

from glassformer import APP
from transformer.commands.heads_command import progress_bar


def add_commands(commands: argparse._SubParsersAction) -> None:
    """``handout``, ``explain``, ``atlas`` and ``gallery``."""
    handout = commands.add_parser("handout", help="write one sentence's way through a model as one HTML file")
    handout.add_argument("--checkpoint", required=True, metavar="DIR")
    handout.add_argument("sentence")
    handout.add_argument("--target", help="the answer to read (teacher forcing); without it the model writes one")
    handout.add_argument("--out", required=True, metavar="FILE", help="where it goes, e.g. handout.html")
    handout.add_argument("--lang", default="en", help="the language of its texts: en (default) or fr")
    handout.set_defaults(command=_handout)
    report = commands.add_parser("explain", help="write what a checkpoint's heads and parts do as one HTML file")
    report.add_argument("--checkpoint", required=True, metavar="DIR")
    report.add_argument("--sentences", metavar="FILE", help="one sentence a line; by default those that come along")
    report.add_argument("--out", required=True, metavar="FILE", help="where it goes, e.g. report.html")
    report.add_argument("--lang", default="en", help="the language of its texts: en (default) or fr")
    report.set_defaults(command=_explain)
    cards = commands.add_parser("atlas", help="write the cards of all heads as one HTML file, a CSV and JSON files")
    cards.add_argument("--checkpoint", required=True, metavar="DIR")
    cards.add_argument("--text", metavar="FILE", help="one sentence a line; by default those that come along")
    cards.add_argument("--limit", type=int, metavar="N", help="read the first N sentences only")
    cards.add_argument("out", metavar="FOLDER", help="where atlas.html, heads.csv and the JSON files go")
    cards.add_argument("--lang", default="en", help="the language of its texts: en (default) or fr")
    cards.set_defaults(command=_atlas)
    gallery = commands.add_parser("gallery", help="write the moving pictures of many sentences as a folder of pages")
    gallery.add_argument(
        "sentences", metavar="FILE", help="TOML: [[page]] with checkpoint (DIR), sentence and perhaps answer"
    )
    gallery.add_argument("out", metavar="FOLDER", help="where the pages and index.html go")
    gallery.add_argument("--lang", default="en", help="the language of its texts: en (default) or fr")
    gallery.set_defaults(command=_gallery)


def _handout(options: argparse.Namespace) -> int:
    import_from_app()
    from views.overview.handout import handout_of

    with _speaking(options.lang):
        html = handout_of(options.checkpoint, options.sentence, options.target)
    return _written(html, options.out)


def _gallery(options: argparse.Namespace) -> int:
    import_from_app()
    from views.overview.gallery import read_entries, write_gallery

    with _speaking(options.lang):
        for file in write_gallery(read_entries(Path(options.sentences)), Path(options.out)):
            print(f"{file}  {file.stat().st_size:,} bytes")
    return 0


def explain(
    checkpoint: str | Path,
    sentences: str | Path | None = None,
    *,
    language: str = "en",
    progress: Callable[[int, int], None] | None = None,
) -> str:
    """The report of a checkpoint's folder over a file of sentences (by default those that come along) as HTML.

    ``progress(done, total)`` counts the sentences that were read. Raises ``CheckpointError`` and ``InputError`` for
    what cannot be read, ``ValueError`` for a language without texts.
    """
    import_from_app()
    from views.heads.report import report_of

    with _speaking(language):
        return report_of(checkpoint, sentences, progress=progress)


def _explain(options: argparse.Namespace) -> int:
    with progress_bar("sentence") as progress:
        html = explain(options.checkpoint, options.sentences, language=options.lang, progress=progress)
    return _written(html, options.out)


def atlas(
    checkpoint: str | Path,
    text: str | Path | None = None,
    out: str | Path = "atlas",
    *,
    limit: int | None = None,
    language: str = "en",
    progress: Callable[[int, int], None] | None = None,
) -> list[Path]:
    """The cards of all heads of a checkpoint's folder over a file of sentences (by default those that come along), as
    files in the folder ``out``; their paths, ``atlas.html`` first. ``progress`` and errors as in ``explain``."""
    import_from_app()
    import transformer
    from transformer.heads.role_tables import first_sentences
    from transformer.text.sentence_files import SHIPPED
    from views.heads.atlas import write_atlas

    file = Path(text or SHIPPED)
    sentences, model = first_sentences(file, limit), transformer.load(checkpoint)
    with _speaking(language):
        return list(write_atlas(Path(out), model, sentences, file=file.name, progress=progress))


def _atlas(options: argparse.Namespace) -> int:
    with progress_bar("sentence") as progress:
        files = atlas(
            options.checkpoint, options.text, options.out, limit=options.limit, language=options.lang, progress=progress
        )
    print(f"{files[0]}  {files[0].stat().st_size:,} bytes, and {len(files) - 1} files of data beside it")
    return 0


def _speaking(language: str) -> AbstractContextManager[None]:
    from ui.words.texts import languages, speaking

    if language not in languages():
        raise ValueError(f"there are no texts in {language!r}; choose one of {', '.join(languages())}")
    return speaking(language)


def _written(html: str, path: str) -> int:
    from transformer.disk.whole_files import write_text

    write_text(Path(path), html)
    print(f"{path}  {len(html.encode()):,} bytes")
    return 0


def import_from_app() -> None:
    """From now on ``charts``, ``ui`` and ``views`` can be imported: a command has its process to itself."""
    if str(APP) not in sys.path:
        sys.path.insert(0, str(APP))
