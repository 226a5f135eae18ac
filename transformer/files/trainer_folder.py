"""Checkpoints of one training run: ``checkpoint-500``, … in the folder of Hugging Face's Trainer.

The folder of the run opens as its last checkpoint, with the earlier ones as snapshots; each checkpoint can also be
opened by itself. ``trainer_state.json`` in a checkpoint has the losses up to its step.
"""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

from transformer.config import is_number
from transformer.disk.plain_files import json_object

STATE = "trainer_state.json"
_NAME = re.compile(r"checkpoint-(\d{1,12})")
_CONFIG = "config.json"
# Our column of ``history.csv`` ← the name in ``log_history``.
_COLUMNS = {
    "epoch": "epoch",
    "learning_rate": "learning_rate",
    "train_loss": "loss",
    "gradient_norm": "grad_norm",
    "dev_loss": "eval_loss",
}
LOGGED = ("step", *_COLUMNS, "dev_perplexity")  # columns of ``trainer_history``, some of which a row may lack


def trainer_checkpoints(path: Path) -> dict[int, Path]:
    """Return the checkpoints of the same training run by step, in order.

    They are in ``path`` or, if this is one of them, beside it; empty for all other folders.
    """
    training = path.parent if _NAME.fullmatch(path.name) else path
    try:
        found = [(match, folder) for folder in training.iterdir() if (match := _NAME.fullmatch(folder.name))]
    except OSError:  # not a folder
        return {}
    return dict(sorted((int(match[1]), folder) for match, folder in found if (folder / _CONFIG).is_file()))


def last_checkpoint(path: Path) -> Path | None:
    """Return the last checkpoint in the folder of a training run without a final model; else ``None``."""
    if _NAME.fullmatch(path.name) or (path / _CONFIG).is_file():
        return None
    return next(reversed(trainer_checkpoints(path).values()), None)


def trainer_step(path: Path) -> int | None:
    """Return the step of a checkpoint, from its name or its ``trainer_state.json``, if it is known."""
    if match := _NAME.fullmatch(path.name):
        return int(match[1])
    step = _state(path).get("global_step")
    return step if type(step) is int and step >= 0 else None


def trainer_history(path: Path) -> list[dict[str, float]]:
    """Return what ``trainer_state.json`` logged: rows of ``history.csv`` with the columns it has.

    The file is in ``path`` or, for the folder of a training run, in its last checkpoint. Perplexity is exp(dev loss).
    The result is empty without such a file.
    """
    rows: dict[int, dict[str, float]] = {}
    # A log that lies beside a checkpoint goes beyond its step.
    inside = {} if _NAME.fullmatch(path.name) else trainer_checkpoints(path)
    log = (_state(path) or _state(next(reversed(inside.values()), path))).get("log_history")
    for entry in log if isinstance(log, list) else ():
        if not isinstance(entry, dict) or type(step := entry.get("step")) is not int:
            continue
        row = rows.setdefault(step, {"step": step})
        row |= {ours: float(entry[theirs]) for ours, theirs in _COLUMNS.items() if is_number(entry.get(theirs))}
        if "dev_loss" in row:
            row["dev_perplexity"] = math.exp(min(row["dev_loss"], 700))
    losses = {"train_loss", "dev_loss"}
    return [row for _, row in sorted(rows.items()) if losses & row.keys()]


def _state(path: Path) -> dict[str, Any]:
    try:
        return json_object(path / STATE)
    except (OSError, ValueError):  # missing or broken: then nothing is known
        return {}
