"""Publication of a finished run as a checkpoint directory, unless the existing one is better."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
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
    standing = best_dev_score(output / HISTORY)
    if standing is not None and standing >= trainer.best_score:
        return f"{output} stays as it is: its dev score is {standing:.2f}, this run reached {trainer.best_score:.2f}"
    remove_unfinished(output)
    best = trainer.directory / "best"
    if not all(_are_same_file(best / file, output / file) for file in (CONFIG, TOKENIZER)):
        (output / CONFIG).unlink(missing_ok=True)  # nobody opens a mix of old and new files before all are there
    for file in (TOKENIZER, WEIGHTS, CONFIG):
        with atomic_path(output / file) as temporary:
            shutil.copyfile(best / file, temporary)
    write_text(output / CARD, model_card(trainer))
    wanted = set(trainer.recipe.snapshots)
    steps = [step for step in earlier_steps(trainer.directory, output) if step in wanted]
    publish_snapshots(trainer.directory, output, steps)
    write_history(output / HISTORY, trainer.history)  # last, because its score shows that this run has been published
    return f"{output} now holds this run's best checkpoint (dev score {trainer.best_score:.2f})"


def publish_snapshots(run_directory: Path, output: Path, steps: Sequence[int]) -> tuple[int, ...]:
    """Write the run's snapshots of ``steps`` in 8 bits into ``output``, and remove all others there.

    Returns:
        The steps that it now has.

    Raises:
        ValueError: If the checkpoint came from another model or tokenizer, the run lacks such a snapshot, or the
            checkpoint is not later than it.
    """
    for file in (CONFIG, TOKENIZER):
        for path in (run_directory / "best", output):
            if not (path / file).is_file():
                raise ValueError(f"{path} contains no checkpoint: it has no {file}; name a run and what came out of it")
        if not _are_same_file(run_directory / "best" / file, output / file):
            raise ValueError(f"{output / file} is not that of {run_directory}: the snapshots of this run do not fit it")
    possible = earlier_steps(run_directory, output)
    if impossible := sorted(set(steps) - set(possible)):
        raise ValueError(
            f"{run_directory} has no snapshot of step {impossible[0]} from before the checkpoint in {output}; it has "
            f"snapshots of steps {', '.join(map(str, possible)) or '(none)'}"
        )
    config = own_config(output / CONFIG)
    for step in sorted(set(steps)):
        write_snapshot(output / snapshot_file(step), load_weights(config, run_directory / snapshot_file(step)), step)
    for step in set(snapshot_steps(output)) - set(steps):
        (output / snapshot_file(step)).unlink()
    return snapshot_steps(output)


def _are_same_file(one: Path, other: Path) -> bool:
    return one.is_file() and other.is_file() and one.read_bytes() == other.read_bytes()


def earlier_steps(run_directory: Path, output: Path) -> tuple[int, ...]:
    """Return the steps of the run's snapshots before the checkpoint in ``output``."""
    own = checkpoint_step(output)
    return tuple(step for step in snapshot_steps(run_directory) if own is None or step < own)


def best_dev_score(history: Path) -> float | None:
    """Return the highest dev score in a ``history.csv``, or ``None`` if there is none."""
    row = best_row(history)
    return None if row is None else row["dev_score"]
