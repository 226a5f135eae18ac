"""The state of a run on disk: enough to resume after a kill as if nothing had happened."""

import csv
import io
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import torch

from transformer.files.whole_files import atomic_path, write_text

STATE = "state.pt"
HISTORY = "history.csv"
COLUMNS = (
    "step", "epoch", "target_tokens", "seconds", "learning_rate", "train_loss", "gradient_norm",
    "dev_loss", "dev_perplexity", "dev_score",
)  # fmt: skip


def save_state(directory: Path, state: dict[str, Any]) -> None:
    """Write the state whole or not at all. ``history.csv`` beside it is for people; the state has the rows, too."""
    with atomic_path(directory / STATE) as temporary:
        torch.save(state, temporary)
    write_history(directory / HISTORY, state["history"])


def load_state(directory: Path) -> dict[str, Any] | None:
    """The last saved state, or ``None`` where the run has not begun. Only tensors and plain values are read.

    Raises ``ValueError`` for a file that is not whole.
    """
    path = directory / STATE
    if not path.is_file():
        return None
    try:
        return torch.load(path, map_location="cpu", weights_only=True)
    except (RuntimeError, EOFError, UnpicklingError, LookupError) as error:
        raise ValueError(f"{path} is not the whole state of a run; remove it, and the run begins again") from error


def write_history(path: Path, rows: list[dict[str, float]]) -> None:
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, restval="", lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({key: f"{value:.6g}" if isinstance(value, float) else value for key, value in row.items()})
    write_text(path, text.getvalue())


def best_row(path: Path) -> dict[str, float] | None:
    """The row of a ``history.csv`` with the highest dev score (the first of equals): the step that was kept as the
    checkpoint. ``None`` where there is no such file or no score in it."""
    if not path.is_file():
        return None
    with path.open(encoding="utf-8", newline="") as file:
        rows = [{name: float(value) for name, value in row.items() if value} for row in csv.DictReader(file)]
    return max((row for row in rows if "dev_score" in row), key=lambda row: row["dev_score"], default=None)
