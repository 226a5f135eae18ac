"""The command about what heads do: over many sentences, or through the steps of the training."""

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from transformer.text.sentence_files import SHIPPED

if TYPE_CHECKING:
    from transformer.files.checkpoints import Checkpoint


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
    from transformer.roles.role_files import as_json, save_corpus_roles
    from transformer.roles.role_tables import report, roles_of_file

    checkpoint, name = load(options.checkpoint), Path(options.sentences).name
    if options.history:
        return _head_history(checkpoint, options)
    roles = roles_of_file(checkpoint, options.sentences, limit=options.limit, batch_size=options.batch_size)
    if options.save:
        print(f"saved in {save_corpus_roles(checkpoint, roles, sentence_file=name)}", file=sys.stderr)
    if options.json:
        print(json.dumps(as_json(checkpoint, roles, sentence_file=name)))
    else:
        print(report(checkpoint, roles, sentence_file=name))
    return 0


def _head_history(checkpoint: "Checkpoint", options: argparse.Namespace) -> int:
    from tqdm import tqdm

    from transformer.roles.role_history import role_history, save_role_history
    from transformer.roles.role_tables import first_sentences, history_report

    sentences = first_sentences(options.sentences, options.limit)
    with tqdm(unit="step", disable=None) as bar:  # None: silent without a terminal

        def progress(done: int, total: int) -> None:
            bar.total = total
            bar.update(done - bar.n)

        history = role_history(checkpoint, sentences, progress=progress)
    if options.save:
        print(f"saved in {save_role_history(checkpoint, history, sentences)}", file=sys.stderr)
    print(json.dumps(asdict(history)) if options.json else history_report(history))
    return 0
