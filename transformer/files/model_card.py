"""What a checkpoint directory records about its training: the model card, and ``history.csv``."""

import csv
import re
from pathlib import Path

from transformer.disk.plain_files import read_plain, read_plain_text
from transformer.files.layout import CARD
from transformer.files.packaged_models import shipped_folder
from transformer.files.trainer_folder import trainer_step

HISTORY = "history.csv"
# The format of ``transformer.training.card``.
_CHOSEN = re.compile(r"^\| chosen by \|.*? at step ([\d,]+)", re.MULTILINE)
_EXAMPLES = re.compile(r"^\| data and its licence \|.*; ([\d,]+) training examples \|", re.MULTILINE)
_BEGAN = re.compile(r"^\| began as \| the checkpoint `([^`]+)`", re.MULTILINE)
_FRESH = re.compile(r"^\| began as \|.*except W_Q and W_K of self-attention", re.MULTILINE)


def card_of(path: Path) -> str:
    """Return the model card of a checkpoint, or this library's card of known weights; "" if there is none."""
    card = shipped_folder(Path(path)) / CARD
    try:
        return read_plain(card).decode("utf-8", errors="replace").replace("\r\n", "\n")
    except (OSError, ValueError):  # missing, or endless
        return ""


def checkpoint_step(path: Path) -> int | None:
    """Return the training step of the weights in a checkpoint directory; ``None`` if it is not recorded.

    It is the step that the card names, that of a checkpoint of Hugging Face's Trainer, or that of the best score in
    ``history.csv``.
    """
    if found := _CHOSEN.search(card_of(path)):
        return int(found[1].replace(",", ""))
    if (step := trainer_step(path)) is not None:
        return step
    try:
        row = best_row(path / HISTORY)
        return None if row is None else int(row["step"])
    except (ValueError, TypeError, KeyError, OverflowError, csv.Error):  # a damaged file records no step
        return None


def starting_checkpoint(card: str) -> str | None:
    """Return the checkpoint that training started from, as the card states; ``None`` for random weights."""
    found = _BEGAN.search(card)
    return found[1] if found else None


def had_fresh_self_attention(card: str) -> bool:
    """Return whether the card states that W_Q and W_K of self-attention started from random values."""
    return _FRESH.search(card) is not None


def training_examples(card: str) -> int | None:
    """Return the number of training examples that the card states; ``None`` if it states none."""
    found = _EXAMPLES.search(card)
    return int(found[1].replace(",", "")) if found else None


def best_row(path: Path) -> dict[str, float] | None:
    """Return the row of a ``history.csv`` with the highest dev score (the first if there are ties).

    That step was kept as the checkpoint. The result is ``None`` if there is no such file or no score in it.
    """
    if not path.is_file():
        return None
    table = csv.DictReader(read_plain_text(path).splitlines())
    rows = [{name: float(value) for name, value in row.items() if value} for row in table]
    return max((row for row in rows if "dev_score" in row), key=lambda row: row["dev_score"], default=None)
