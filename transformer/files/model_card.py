"""What a checkpoint directory says about its training: the model card, and ``history.csv``."""

import csv
import re
from pathlib import Path

from transformer.disk.plain_files import read_plain, read_plain_text
from transformer.files.layout import CARD

HISTORY = "history.csv"
# As ``transformer.training.card`` writes it.
_CHOSEN = re.compile(r"^\| chosen by \|.*? at step ([\d,]+)", re.MULTILINE)
_BEGAN = re.compile(r"^\| began as \| the checkpoint `([^`]+)`", re.MULTILINE)


def card_of(path: Path) -> str:
    """The model card of a checkpoint directory; empty where there is none."""
    card = Path(path) / CARD
    try:
        return read_plain(card).decode("utf-8", errors="replace").replace("\r\n", "\n")
    except (OSError, ValueError):  # none, or one that has no end
        return ""


def checkpoint_step(path: Path) -> int | None:
    """The training step whose weights a checkpoint directory holds: the one that its card names, else that of the best
    score in its ``history.csv``; ``None`` if neither tells."""
    if found := _CHOSEN.search(card_of(path)):
        return int(found[1].replace(",", ""))
    row = best_row(path / HISTORY)
    return None if row is None else int(row["step"])


def began_as(card: str) -> str | None:
    """The checkpoint that a card says the training began with, or ``None`` where it began with random weights."""
    found = _BEGAN.search(card)
    return found[1] if found else None


def best_row(path: Path) -> dict[str, float] | None:
    """The row of a ``history.csv`` with the highest dev score (the first of equals): the step that was kept as the
    checkpoint. ``None`` where there is no such file or no score in it."""
    if not path.is_file():
        return None
    table = csv.DictReader(read_plain_text(path).splitlines())
    rows = [{name: float(value) for name, value in row.items() if value} for row in table]
    return max((row for row in rows if "dev_score" in row), key=lambda row: row["dev_score"], default=None)
