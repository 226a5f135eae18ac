"""The command about what heads do: over many sentences, or through the steps of the training."""

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

from transformer.text.sentence_files import SHIPPED


def add_heads(commands: argparse._SubParsersAction) -> None:
    """``heads``."""
    heads = commands.add_parser("heads", help="find out what every head does over many sentences")
    heads.add_argument("--checkpoint", required=True, metavar="DIR")
    heads.add_argument(
        "--sentences",
        default=str(SHIPPED),
        metavar="FILE",
        help="one a line (default: those that ship with this)",
    )
    heads.add_argument("--limit", type=int, metavar="N", help="read the first N sentences only")
    heads.add_argument("--batch-size", type=int, default=16, metavar="N", help="sentences at once (default 16)")
    heads.add_argument(
        "--history",
        action="store_true",
        help="at which step of the training, by the snapshots, every head found its job",
    )
    heads.add_argument(
        "--save",
        action="store_true",
        help="write head_roles.json (with --history head_history.json) into the checkpoint, for the app",
    )
    heads.add_argument("--json", action="store_true", help="print one JSON object")
    heads.set_defaults(command=_heads)


def _heads(options: argparse.Namespace) -> int:
    from transformer.files.checkpoints import load
    from transformer.heads.corpus_roles import corpus_roles
    from transformer.heads.role_files import as_json, save_corpus_roles
    from transformer.heads.role_history import role_history, save_role_history
    from transformer.heads.role_tables import first_sentences, history_report, report

    checkpoint, name = load(options.checkpoint), Path(options.sentences).name
    sentences = first_sentences(options.sentences, options.limit)
    if options.history:
        with progress_bar("step") as progress:
            history = role_history(checkpoint, sentences, progress=progress)
        saved = save_role_history(checkpoint, history, sentences) if options.save else None
        said = json.dumps(asdict(history)) if options.json else history_report(history)
    else:
        with progress_bar("sentence") as progress:
            roles = corpus_roles(checkpoint, sentences, batch_size=options.batch_size, progress=progress)
        saved = save_corpus_roles(checkpoint, roles, sentence_file=name) if options.save else None
        found = as_json(checkpoint, roles, sentence_file=name) if options.json else None
        said = json.dumps(found) if found else report(checkpoint, roles, sentence_file=name)
    if saved:
        print(f"saved in {saved}", file=sys.stderr)
    print(said)
    return 0


@contextmanager
def progress_bar(unit: str) -> Iterator[Callable[[int, int], None]]:
    """A function that takes what is done and the total; it draws on a terminal."""
    from tqdm import tqdm

    with tqdm(unit=unit, disable=None) as bar:  # None: silent without a terminal

        def progress(done: int, total: int) -> None:
            bar.total = total
            bar.update(done - bar.n)

        yield progress
