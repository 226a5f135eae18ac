"""Files that are whole or absent, never half written."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from transformer.errors import CheckpointError


@contextmanager
def atomic_path(path: Path) -> Iterator[Path]:
    """Write to the yielded path; it takes the place of ``path`` only when the block ends well.

    A reader sees the old file or the new one, never half of one, also when the process is killed.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    os.close(handle)
    try:
        yield Path(temporary)
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    finally:
        Path(temporary).unlink(missing_ok=True)


def remove_unfinished(path: Path) -> None:
    """Remove what killed processes have left beside ``path`` out of ``atomic_path(path)``."""
    for temporary in Path(path).parent.glob(f".{Path(path).name}.*"):
        temporary.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    with atomic_path(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def not_whole(file: Path, error: object) -> CheckpointError:
    """What is said of a safetensors file that cannot be read."""
    return CheckpointError("{file} is not a whole safetensors file: {problem}", file=file, problem=error)
