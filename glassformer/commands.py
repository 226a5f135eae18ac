"""The commands of ``python -m transformer`` that draw: they belong to the program, not to the library."""

import argparse
import sys
from pathlib import Path

from glassformer import APP


def add_commands(commands: argparse._SubParsersAction) -> None:
    """``handout``."""
    handout = commands.add_parser("handout", help="write one sentence's way through a model as one HTML file")
    handout.add_argument("--checkpoint", required=True, metavar="DIR")
    handout.add_argument("sentence")
    handout.add_argument("--target", help="the answer to read (teacher forcing); without it the model writes one")
    handout.add_argument("--out", required=True, metavar="FILE", help="where it goes, e.g. handout.html")
    handout.add_argument("--lang", default="en", help="the language of its texts: en (default) or fr")
    handout.set_defaults(command=_handout)


def _handout(options: argparse.Namespace) -> int:
    import_from_app()
    from ui.words.texts import languages, speaking
    from views.overview.handout import handout_of

    if options.lang not in languages():
        raise ValueError(f"there are no texts in {options.lang!r}; choose one of {', '.join(languages())}")
    with speaking(options.lang):
        html = handout_of(options.checkpoint, options.sentence, options.target)
    Path(options.out).write_text(html, encoding="utf-8")
    print(f"{options.out}  {len(html.encode()):,} bytes")
    return 0


def import_from_app() -> None:
    """From now on ``charts``, ``ui`` and ``views`` can be imported: a command has its process to itself."""
    sys.path.insert(0, str(APP))
