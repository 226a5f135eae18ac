"""From a finished run to a checkpoint directory, unless the one that is there is better."""

from __future__ import annotations

import csv
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from transformer.checkpoint import CARD, CONFIG, TOKENIZER, WEIGHTS
from transformer.files import atomic_path, write_text
from transformer.training.card import model_card
from transformer.training.run_state import HISTORY, write_history

if TYPE_CHECKING:
    from transformer.training.trainer import Trainer


def publish(trainer: Trainer, output: Path) -> str:
    """Copy the run's best checkpoint, its curves and a new model card to ``output``; return a sentence about it.

    A checkpoint that is there already stays, unless the run's ``dev`` score is higher than the best in its
    ``history.csv``.
    """
    standing = best_dev_score(output / HISTORY)
    if standing is not None and standing >= trainer.best_score:
        return f"{output} stays as it is: its dev score is {standing:.2f}, this run reached {trainer.best_score:.2f}"
    output.mkdir(parents=True, exist_ok=True)
    for file in (WEIGHTS, CONFIG, TOKENIZER):
        with atomic_path(output / file) as temporary:
            shutil.copyfile(trainer.directory / "best" / file, temporary)
    write_history(output / HISTORY, trainer.history)
    write_text(output / CARD, model_card(trainer))
    return f"{output} now holds this run's best checkpoint (dev score {trainer.best_score:.2f})"


def best_dev_score(history: Path) -> float | None:
    """The highest dev score in a ``history.csv``, or ``None`` where there is none."""
    if not history.is_file():
        return None
    with history.open(encoding="utf-8", newline="") as file:
        scores = [float(row["dev_score"]) for row in csv.DictReader(file) if row.get("dev_score")]
    return max(scores, default=None)
