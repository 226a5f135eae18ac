"""Publication of a finished run as a checkpoint directory, unless the existing one is better."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from transformer.disk.whole_files import atomic_path, remove_unfinished, write_text
from transformer.files.checkpoints import CARD, CONFIG, TOKENIZER, WEIGHTS, load_weights
from transformer.files.layout import own_config
from transformer.files.model_card import HISTORY, best_row, checkpoint_step
from transformer.files.snapshots import snapshot_file, snapshot_steps, write_snapshot
from transformer.training.card import model_card
from transformer.training.run_state import write_history

if TYPE_CHECKING:
    from transformer.training.trainer import Trainer


def publish(trainer: Trainer, output: Path) -> str:
    """Copy the run's best checkpoint, curves, snapshots and a new model card to ``output``.

    An existing checkpoint stays unless the run's ``dev`` score is higher than the best in its ``history.csv``.
    Snapshots are those of the recipe that were taken before the best checkpoint, in 8 bits.

    Returns:
        A sentence about what was done.
    """
    standing = best_row(output / HISTORY)
    if standing is not None and (score := standing["dev_score"]) >= trainer.best_score:
        return f"{output} stays as it is: its dev score is {score:.2f}, this run reached {trainer.best_score:.2f}"
    remove_unfinished(output)
    best = trainer.directory / "best"
    if not all(_are_same_file(best / file, output / file) for file in (CONFIG, TOKENIZER)):
        (output / CONFIG).unlink(missing_ok=True)  # nobody opens a mix of old and new files before all are there
    for file in (TOKENIZER, WEIGHTS, CONFIG):
        with atomic_path(output / file) as temporary:
            shutil.copyfile(best / file, temporary)
    write_text(output / CARD, model_card(trainer))
    _publish_snapshots(trainer, output)
    write_history(output / HISTORY, trainer.history)  # last, because its score shows that this run has been published
    return f"{output} now holds this run's best checkpoint (dev score {trainer.best_score:.2f})"


def _publish_snapshots(trainer: Trainer, output: Path) -> None:
    """Write the snapshots of the recipe from before the checkpoint in 8 bits, and remove all others."""
    last = checkpoint_step(output)
    steps = {
        step
        for step in snapshot_steps(trainer.directory)
        if step in trainer.recipe.snapshots and (last is None or step < last)
    }
    for step in steps:
        weights = load_weights(own_config(output / CONFIG), trainer.directory / snapshot_file(step))
        write_snapshot(output / snapshot_file(step), weights, step)
    for step in set(snapshot_steps(output)) - steps:
        (output / snapshot_file(step)).unlink()


def _are_same_file(one: Path, other: Path) -> bool:
    return one.is_file() and other.is_file() and one.read_bytes() == other.read_bytes()
