"""Command ``renew``: recompute everything that is stored beside new weights."""

import sys

from transformer.commands.command_line import CHECKPOINT, Command, run_command
from transformer.commands.heads_command import HEADS
from transformer.commands.openings_command import OPENINGS


def _renew(checkpoint: str) -> int:
    """Run each command that needs only the weights, except those whose file this checkpoint lacks."""
    from transformer.files.names import resolve
    from transformer.files.opening_file import OPENING
    from transformer.files.packaged_models import shipped_folder
    from transformer.files.snapshots import snapshot_steps

    path, save = resolve(checkpoint), ["--checkpoint", checkpoint, "--save"]
    lines = [["heads", *save]]
    lines += [["heads", "--history", *save]] if snapshot_steps(path) else []
    lines += [["openings", "--checkpoint", checkpoint]] if (shipped_folder(path) / OPENING).is_file() else []
    for line in lines:
        print("python -m transformer", *line, file=sys.stderr)
        if status := run_command((HEADS, OPENINGS), line):
            return status
    return 0


RENEW = Command("renew", "after new weights: heads and openings, one after the other", _renew, (CHECKPOINT,))
