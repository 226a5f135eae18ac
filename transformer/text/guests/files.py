"""Limits for third-party tokenizer files; every error names the file."""

from __future__ import annotations

from pathlib import Path

from transformer.errors import CheckpointError
from transformer.text.tokenizer_files import entries_problem, unreadable

MAX_BYTES = 64_000_000
MAX_ENTRIES = 300_000
LONGEST_ENTRY = 2000  # characters; a run of spaces has some hundreds in known vocabularies


def check_files(folder: Path) -> None:
    """Raise ``CheckpointError`` if there is no tokenizer, or a file is too large or not a regular file."""
    files = sorted(folder.iterdir())
    if not any(file.name.startswith(("tokenizer", "vocab")) or file.suffix in (".model", ".spm") for file in files):
        raise CheckpointError(f"{folder} lacks its tokenizer: tokenizer.json, vocab.txt or a .model file")
    for file in files:
        if file.suffix in (".json", ".txt", ".model", ".spm", ".jinja") and not file.name.endswith(".index.json"):
            if not file.is_file():
                raise unreadable(file, "it is not a regular file")
            if (size := file.stat().st_size) > MAX_BYTES:
                raise unreadable(file, f"it has {size:,} bytes; at most {MAX_BYTES:,} are read")


def check_ids(file: Path, ids: dict[str, int]) -> dict[str, int]:
    """Check the ids of all entries of a vocabulary and return them.

    Raises:
        CheckpointError: If there are too many entries, an entry is too long, or an id is not an integer ≥ 0.
    """
    problem = entries_problem(ids, most=MAX_ENTRIES, longest=LONGEST_ENTRY) if ids else "it contains no vocabulary"
    if problem:
        raise unreadable(file, problem)
    return ids
