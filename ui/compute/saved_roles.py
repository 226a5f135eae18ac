"""Roles of heads that come with a checkpoint, read once for all sessions."""

from functools import partial
from pathlib import Path

from transformer.files.checkpoints import Checkpoint
from transformer.files.layout import file_of_results
from transformer.heads.role_files import FILE, SavedRoles, load_corpus_roles
from ui.compute.store import store
from ui.words.once_a_run import once_a_run


def saved_roles(checkpoint: Checkpoint) -> SavedRoles | None:
    """Return ``load_corpus_roles``, and read the file again only after it has changed.

    Raises ``CheckpointError`` as ``load_corpus_roles`` does.
    """
    stamp = _changed_at(file_of_results(checkpoint.path, FILE))
    return store.get(checkpoint, ("saved roles", stamp), partial(load_corpus_roles, checkpoint))


@once_a_run
def _changed_at(path: Path) -> int | None:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return None
