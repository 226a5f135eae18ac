"""Command ``heads``: what heads do over many sentences, or through the steps of training."""

import json
import sys
from dataclasses import asdict
from pathlib import Path

from transformer.commands.command_line import CHECKPOINT, JSON, LIMIT, Command, argument, progress_bar
from transformer.text.sentence_files import SHIPPED


def _heads(
    checkpoint: str, sentences: str, limit: int | None, batch_size: int, history: bool, save: bool, as_json: bool
) -> None:
    from transformer.commands.role_tables import first_sentences, history_report, report
    from transformer.files.checkpoints import load
    from transformer.heads.head_roles import corpus_roles
    from transformer.heads.role_files import as_json as roles_json
    from transformer.heads.role_files import save_corpus_roles
    from transformer.heads.roles_through_training import role_history, save_role_history

    model, name, read = load(checkpoint), Path(sentences).name, first_sentences(sentences, limit)
    if history:
        with progress_bar("step") as progress:
            steps = role_history(model, read, progress=progress)
        saved = save_role_history(model, steps, read) if save else None
        output = json.dumps(asdict(steps)) if as_json else history_report(steps)
    else:
        with progress_bar("sentence") as progress:
            roles = corpus_roles(model, read, batch_size=batch_size, progress=progress)
        saved = save_corpus_roles(model, roles, sentence_file=name) if save else None
        found = roles_json(model, roles, sentence_file=name) if as_json else None
        output = json.dumps(found) if found else report(model, roles, sentence_file=name)
    if saved:
        print(f"saved in {saved}", file=sys.stderr)
    print(output)


HEADS = Command(
    "heads",
    "find out what every head does over many sentences",
    _heads,
    (
        CHECKPOINT,
        argument(
            "--sentences",
            default=str(SHIPPED),
            metavar="FILE",
            help="one a line (default: those that ship with this)",
        ),
        LIMIT,
        argument("--batch-size", type=int, default=16, metavar="N", help="sentences at once (default 16)"),
        argument(
            "--history",
            action="store_true",
            help="at which step of the training, by the snapshots, every head found its role",
        ),
        argument(
            "--save",
            action="store_true",
            help="write head_roles.json (with --history head_history.json) into the checkpoint, for the app",
        ),
        JSON,
    ),
)
