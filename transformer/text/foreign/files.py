"""Limits for third-party tokenizer files; every error names the file."""

from __future__ import annotations

from pathlib import Path

from transformer.text.message import Message
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
        raise unreadable(file, Message("{path} is not a regular file", path=file))
    if (size := file.stat().st_size) > MAX_BYTES:
        what = {"bytes": f"{size:,}", "most": f"{MAX_BYTES:,}"}
        raise unreadable(file, Message("it has {bytes} bytes; at most {most} are read", **what))


def check_ids(file: Path, ids: dict[str, int]) -> dict[str, int]:
    """Check the ids of all entries of a vocabulary and return them.

    Raises:
        CheckpointError: There are too many entries, an entry is too long, or an id is not an integer ≥ 0.
    """
    if not ids:
        raise unreadable(file, Message("it contains no vocabulary"))
    if len(ids) > MAX_ENTRIES:
        what = {"count": f"{len(ids):,}", "most": f"{MAX_ENTRIES:,}"}
        raise unreadable(file, Message("its vocabulary has {count} entries; at most {most} are read", **what))
    if wrong := [id for id in ids.values() if not 0 <= id < MAX_ENTRIES]:
        raise unreadable(file, Message("its vocabulary has the id {id}; ids are integers ≥ 0", id=repr(wrong[0])))
    if (longest := max(map(len, ids))) > LONGEST_ENTRY:
        what = {"count": f"{longest:,}", "most": LONGEST_ENTRY}
        raise unreadable(file, Message("its longest entry has {count} characters; at most {most} are read", **what))
    return ids
