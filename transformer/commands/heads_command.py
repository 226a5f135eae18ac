"""Command ``heads``: what heads do over many sentences."""

import json
import sys
from pathlib import Path

from transformer.commands.command_line import CHECKPOINT, JSON, LIMIT, Command, argument, progress_bar
from transformer.text.sentence_files import SHIPPED


def _heads(checkpoint: str, sentences: str, limit: int | None, batch_size: int, save: bool, as_json: bool) -> None:
    from transformer.commands.role_tables import first_sentences, report
    from transformer.files.checkpoints import load
    from transformer.heads.head_roles import corpus_roles
    from transformer.heads.role_files import as_json as roles_json
    from transformer.heads.role_files import save_corpus_roles

    model, name, read = load(checkpoint), Path(sentences).name, first_sentences(sentences, limit)
    with progress_bar("sentence") as progress:
        roles = corpus_roles(model, read, batch_size=batch_size, progress=progress)
    if save:
        print(f"saved in {save_corpus_roles(model, roles, sentence_file=name)}", file=sys.stderr)
    if as_json:
        print(json.dumps(roles_json(model, roles, sentence_file=name)))
    else:
        print(report(model, roles, sentence_file=name))


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
        argument("--save", action="store_true", help="write head_roles.json into the checkpoint, for the app"),
        JSON,
    ),
)
