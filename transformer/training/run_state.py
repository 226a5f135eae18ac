"""State of a run on disk: enough to resume after a kill as if nothing had happened."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from pickle import UnpicklingError
from typing import TYPE_CHECKING, Any

import torch

from transformer.disk.whole_files import atomic_path, write_text
from transformer.files.model_card import HISTORY

if TYPE_CHECKING:
    from accelerate import Accelerator

STATE = "state.pt"
COLUMNS = (
    "step", "epoch", "target_tokens", "seconds", "learning_rate", "train_loss", "gradient_norm",
    "dev_loss", "dev_perplexity", "dev_score",
)  # fmt: skip


def save_state(directory: Path, state: dict[str, Any]) -> None:
    """Write the state completely or not at all.

    The state also contains the rows of ``history.csv``, which is written beside it for human readers.
    """
    with atomic_path(directory / STATE) as temporary:
        torch.save(state, temporary)
    write_history(directory / HISTORY, state["history"])


def load_state(directory: Path) -> dict[str, Any] | None:
    """Return the last saved state, or ``None`` at the start; only tensors and plain values are read.

    Raises:
        ValueError: If the file is incomplete.
    """
    path = directory / STATE
    if not path.is_file():
        return None
    try:
        return torch.load(path, map_location="cpu", weights_only=True)
    except (RuntimeError, EOFError, UnpicklingError, LookupError) as error:
        raise ValueError(f"{path} is not the whole state of a run; remove it, and the run begins again") from error


def random_states(accelerator: Accelerator) -> dict[str, torch.Tensor]:
    """Return the random states of every process, CPU and GPU, by device: [process, byte]."""
    own = {"cpu": torch.get_rng_state()}
    if torch.cuda.is_available():
        own["cuda"] = torch.cuda.get_rng_state()
    return {name: accelerator.gather(state[None].to(accelerator.device)).cpu() for name, state in own.items()}


def set_random_states(states: dict[str, torch.Tensor], rank: int) -> None:
    """Restore the random states of process ``rank``.

    If the run was saved by fewer processes, those of the first one are used.
    """
    # A copy, because torch 2.13 crashes on a row of a table.
    own = {name: rows[rank if rank < len(rows) else 0].clone() for name, rows in states.items()}
    torch.set_rng_state(own["cpu"])
    if torch.cuda.is_available() and "cuda" in own:
        torch.cuda.set_rng_state(own["cuda"])


def write_history(path: Path, rows: list[dict[str, float]]) -> None:
    """Write the rows of the history as CSV; a column that only some rows have comes last."""
    columns = dict.fromkeys((*COLUMNS, *(name for row in rows for name in row)))
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({name: f"{value:.6g}" if isinstance(value, float) else value for name, value in row.items()})
    write_text(path, text.getvalue())
