"""Commands of ``python -m transformer`` that draw, which belong to the program and not to the library."""

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from glassformer import APP
from transformer.commands.command_line import CHECKPOINT, LIMIT, Command, argument, progress_bar

_LANGUAGE = argument(
    "--lang", dest="language", default="en", metavar="LANG", help="the language of its texts: en (default) or fr"
)


def _handout(checkpoint: str, sentence: str, target: str | None, out: str, language: str) -> None:
    import_from_app()
    from views.overview.handout import handout_of

    with _use_language(language):
        html = handout_of(checkpoint, sentence, target)
    _write(html, out)


HANDOUT = Command(
    "handout",
    "write one sentence's way through a model as one HTML file",
    _handout,
    (
        CHECKPOINT,
        argument("sentence"),
        argument("--target", help="the answer to read (teacher forcing); without it the model writes one"),
        argument("--out", required=True, metavar="FILE", help="where it goes, e.g. handout.html"),
        _LANGUAGE,
    ),
)


def _gallery(sentences: str, out: str, language: str) -> None:
    import_from_app()
    from views.overview.gallery import read_entries, write_gallery

    with _use_language(language):
        for file in write_gallery(read_entries(Path(sentences)), Path(out)):
            print(f"{file}  {file.stat().st_size:,} bytes")


GALLERY = Command(
    "gallery",
    "write the moving pictures of many sentences as a folder of pages",
    _gallery,
    (
        argument("sentences", metavar="FILE", help="TOML: [[page]] with checkpoint (DIR), sentence and perhaps answer"),
        argument("out", metavar="FOLDER", help="where the pages and index.html go"),
        _LANGUAGE,
    ),
)


def explain(
    checkpoint: str | Path,
    sentences: str | Path | None = None,
    *,
    language: str = "en",
    progress: Callable[[int, int], None] | None = None,
) -> str:
    """Return the report of a checkpoint over a file of sentences (by default the included ones) as HTML.

    ``progress(done, total)`` counts the sentences that were read.

    Raises:
        CheckpointError: If the checkpoint cannot be read.
        InputError: If the sentences cannot be read.
        ValueError: If the language has no texts.
    """
    import_from_app()
    from views.heads.report import report_of

    with _use_language(language):
        return report_of(checkpoint, sentences, progress=progress)


def _explain(checkpoint: str, sentences: str | None, out: str, language: str) -> None:
    with progress_bar("sentence") as progress:
        html = explain(checkpoint, sentences, language=language, progress=progress)
    _write(html, out)


EXPLAIN = Command(
    "explain",
    "write what a checkpoint's heads and parts do as one HTML file",
    _explain,
    (
        CHECKPOINT,
        argument("--sentences", metavar="FILE", help="one sentence a line; by default those that come along"),
        argument("--out", required=True, metavar="FILE", help="where it goes, e.g. report.html"),
        _LANGUAGE,
    ),
)


def atlas(
    checkpoint: str | Path,
    text: str | Path | None = None,
    out: str | Path = "atlas",
    *,
    limit: int | None = None,
    language: str = "en",
    progress: Callable[[int, int], None] | None = None,
) -> list[Path]:
    """Write the cards of all heads of a checkpoint over a file of sentences to the folder ``out``.

    Sentences are by default the included ones. ``progress`` and errors are as in ``explain``.

    Returns:
        The paths of the files, ``atlas.html`` first.
    """
    import_from_app()
    import transformer
    from transformer.commands.role_tables import first_sentences
    from transformer.text.sentence_files import SHIPPED
    from views.heads.atlas import write_atlas

    file = Path(text or SHIPPED)
    sentences, model = first_sentences(file, limit), transformer.load(checkpoint)
    with _use_language(language):
        return list(write_atlas(Path(out), model, sentences, file=file.name, progress=progress))


def _atlas(checkpoint: str, text: str | None, limit: int | None, out: str, language: str) -> None:
    with progress_bar("sentence") as progress:
        files = atlas(checkpoint, text, out, limit=limit, language=language, progress=progress)
    print(f"{files[0]}  {files[0].stat().st_size:,} bytes, and {len(files) - 1} files of data beside it")


ATLAS = Command(
    "atlas",
    "write the cards of all heads as one HTML file, a CSV and JSON files",
    _atlas,
    (
        CHECKPOINT,
        argument("--text", metavar="FILE", help="one sentence a line; by default those that come along"),
        LIMIT,
        argument("out", metavar="FOLDER", help="where atlas.html, heads.csv and the JSON files go"),
        _LANGUAGE,
    ),
)


def _web(out: str, checkpoints: list[str], app: str, single_file: bool) -> None:
    import_from_app()
    try:
        from web.site import write_single_file, write_site
    except ModuleNotFoundError as error:
        if error.name not in ("onnx", "onnxscript"):
            raise
        raise ValueError(
            f'the package {error.name} is missing, which exports models: pip install "glassformer[web]" '
            "(in this repository: pip install -r requirements-web.txt)"
        ) from error
    from transformer.files.names import resolve

    shipped = APP / "checkpoints"
    folders = [shipped / name if (shipped / name).is_dir() else resolve(name) for name in checkpoints]
    more: dict[str, Any] = {"app": app, "progress": lambda line: print(line, file=sys.stderr)}
    if single_file:
        file = Path(out) / "glassformer.html"
        print(f"{file}  {write_single_file(file, folders, **more):,} bytes: it opens without a server")
        return
    sizes = write_site(Path(out), folders, **more)
    print(f"{out}  {len(sizes)} files, {sum(sizes.values()):,} bytes: any web space can serve it")


WEB = Command(
    "web",
    "write a static site that runs models in the browser, without a server",
    _web,
    (
        argument("out", metavar="FOLDER", help="where index.html and all that it needs go"),
        argument(
            "--checkpoints", nargs="+", default=["en-fr"], metavar="NAME", help="names or folders; the first one opens"
        ),
        argument("--app", default="", metavar="ADDRESS", help="address of a Glassformer app that the page links to"),
        argument("--single-file", action="store_true", help="write one HTML file, which opens without a server"),
    ),
)
DRAWING_COMMANDS = (HANDOUT, EXPLAIN, ATLAS, GALLERY, WEB)


def _use_language(language: str) -> AbstractContextManager[None]:
    from ui.words.texts import languages, use_language

    if language not in languages():
        raise ValueError(f"there are no texts in {language!r}; choose one of {', '.join(languages())}")
    return use_language(language)


def _write(html: str, path: str) -> None:
    from transformer.disk.whole_files import write_text

    write_text(Path(path), html)
    print(f"{path}  {len(html.encode()):,} bytes")


def import_from_app() -> None:
    """Make ``charts``, ``ui`` and ``views`` importable; a command has its process to itself."""
    if str(APP) not in sys.path:
        sys.path.insert(0, str(APP))
