"""Roles of heads that come with a checkpoint, read once for all sessions."""

from functools import partial

from transformer.files.checkpoints import Checkpoint
from transformer.files.layout import file_of_results
from transformer.heads.role_files import FILE, SavedRoles, load_corpus_roles
from ui.compute.store import store
from ui.words.translations import changed_at


def saved_roles(checkpoint: Checkpoint) -> SavedRoles | None:
    """Return ``load_corpus_roles``, and read the file again only after it has changed.

    Raises ``CheckpointError`` as ``load_corpus_roles`` does.
    """
    stamp = changed_at(str(file_of_results(checkpoint.path, FILE)))
    return store.get(checkpoint, ("saved roles", stamp), partial(load_corpus_roles, checkpoint))
