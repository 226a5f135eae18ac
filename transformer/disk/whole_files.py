"""Files that are whole or absent, never half written."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from transformer.errors import CheckpointError

_UNFINISHED = ".unfinished"


@contextmanager
def atomic_path(path: Path) -> Iterator[Path]:
    """Write to the yielded path; it takes the place of ``path`` only when the block ends well.

    A reader sees the old file or the new one, never half of one, also when the process is killed. Raises ``OSError``
    for a full disk, a folder that may not be written to and the like, whatever the library that writes makes of it.
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
    except ValueError:  # about what was to be written
        raise
    except Exception as error:  # torch, safetensors and tokenizers each have one of their own
        raise OSError(f"{path} cannot be written ({error}); what was there before is untouched") from error
    finally:
        if temporary is not None:
            Path(temporary).unlink(missing_ok=True)


def remove_unfinished(folder: Path) -> None:
    """Remove what killed processes have left in ``folder``, and in the folders in it, out of ``atomic_path``."""
    for temporary in Path(folder).rglob(f".*{_UNFINISHED}"):
        temporary.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    with atomic_path(path) as temporary:
        # The name of a file in it is whole again, though the locale could not read it.
        temporary.write_text(text, encoding="utf-8", errors="surrogateescape")


def not_whole(file: Path, error: object) -> CheckpointError:
    """What is said of a safetensors file that cannot be read."""
    return CheckpointError("{file} is not a complete safetensors file: {problem}", file=file, problem=error)
