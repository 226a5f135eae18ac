"""Files that are complete or absent, never half written."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from transformer.errors import CheckpointError, text_of

_UNFINISHED = ".unfinished"


@contextmanager
def atomic_path(path: Path) -> Iterator[Path]:
    """Yield a temporary path that replaces ``path`` only if the block succeeds.

    A reader sees the old file or the new one, never half of one, even if the process is killed.

    Raises:
        OSError: If the disk is full, the folder not writable, or the like, whatever error the writing library raises.
    """
    path = Path(path)
    temporary = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=_UNFINISHED)
        os.close(handle)
        yield Path(temporary)
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except ValueError:  # about the content to write
        raise
    except Exception as error:  # torch, safetensors and tokenizers each raise their own
        problem = (isinstance(error, OSError) and error.strerror) or text_of(error)  # its file is the temporary one
        raise OSError(f"{path} cannot be written ({problem}); what was there before is untouched") from error
    finally:
        if temporary is not None:
            Path(temporary).unlink(missing_ok=True)


def remove_unfinished(folder: Path) -> None:
    """Remove what killed processes left of ``atomic_path`` in ``folder`` and its subfolders."""
    for temporary in Path(folder).rglob(f".*{_UNFINISHED}"):
        temporary.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Write a text file completely or not at all."""
    with atomic_path(path) as temporary:
        # Restores a file name in the text that the locale could not decode.
        temporary.write_text(text, encoding="utf-8", errors="surrogateescape")


def not_whole(file: Path, error: object) -> CheckpointError:
    """Return the error for a safetensors file that cannot be read."""
    return CheckpointError("{file} is not a complete safetensors file: {problem}", file=file, problem=error)
