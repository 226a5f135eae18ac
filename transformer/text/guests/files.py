"""Limits for third-party tokenizer files; every error names the file."""

from __future__ import annotations

from pathlib import Path

from transformer.text.tokenizer_files import unreadable

MAX_BYTES = 64_000_000
MAX_ENTRIES = 300_000
LONGEST_ENTRY = 2000  # characters; a run of spaces has some hundreds in known vocabularies


def check_files(folder: Path) -> None:
    """Raise ``CheckpointError`` for a file beside the weights that is too large or not a regular file."""
    for file in sorted(folder.iterdir()):
        if file.suffix in (".json", ".txt", ".model", ".spm", ".jinja") and not file.name.endswith(".index.json"):
            _check_plain(file)


def _check_plain(file: Path) -> None:
    if not file.is_file():
        raise unreadable(file, f"{file} is not a regular file")
    if (size := file.stat().st_size) > MAX_BYTES:
        raise unreadable(file, f"it has {size:,} bytes; at most {MAX_BYTES:,} are read")


def check_ids(file: Path, ids: dict[str, int]) -> dict[str, int]:
    """Check the ids of all entries of a vocabulary and return them.

    Raises:
        CheckpointError: There are too many entries, an entry is too long, or an id is not an integer ≥ 0.
    """
    if not ids:
        raise unreadable(file, "it contains no vocabulary")
    if len(ids) > MAX_ENTRIES:
        raise unreadable(file, f"its vocabulary has {len(ids):,} entries; at most {MAX_ENTRIES:,} are read")
    if wrong := [id for id in ids.values() if not 0 <= id < MAX_ENTRIES]:
        raise unreadable(file, f"its vocabulary has the id {wrong[0]!r}; ids are integers ≥ 0")
    if (longest := max(map(len, ids))) > LONGEST_ENTRY:
        raise unreadable(file, f"its longest entry has {longest:,} characters; at most {LONGEST_ENTRY} are read")
    return ids
