"""Files that are complete or absent, never half written."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from glob import escape
from pathlib import Path

from transformer.errors import text_of

try:
    import fcntl
except ImportError:  # Windows: what a killed process left stays
    fcntl = None  # type: ignore[assignment]

_UNFINISHED = ".unfinished"


@contextmanager
def atomic_path(path: Path) -> Iterator[Path]:
    """Yield a temporary path that replaces ``path`` only if the block succeeds.

    A reader sees the old file or the new one, never half of one, even if the process is killed. What a killed process
    left behind is removed when the file is next written. A link remains a link, and a device or pipe receives the
    content.

    Raises:
        OSError: If the disk is full, the folder not writable, or the like, whatever error the writing library raises.
    """
    path = Path(path)
    is_stream = path.exists() and not path.is_file() and not path.is_dir()
    target = Path(os.path.realpath(path))
    handle, temporary = -1, None
    try:
        folder = Path(tempfile.gettempdir()) if is_stream else target.parent
        folder.mkdir(parents=True, exist_ok=True)
        prefix = f".{path.name if is_stream else target.name}."
        _remove_abandoned(folder.glob(f"{escape(prefix)}*{_UNFINISHED}"))
        handle, temporary = tempfile.mkstemp(dir=folder, prefix=prefix, suffix=_UNFINISHED)
        if fcntl:
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield Path(temporary)
        os.close(handle)
        handle = -1
        if is_stream:
            with open(temporary, "rb") as source, open(path, "wb") as stream:
                shutil.copyfileobj(source, stream)
            return
        os.chmod(temporary, 0o644)
        os.replace(temporary, target)
    except ValueError:  # the content cannot be written
        raise
    except Exception as error:  # torch, safetensors and tokenizers each raise their own
        # without the file name, which is that of the temporary file
        problem = (isinstance(error, OSError) and error.strerror) or text_of(error)
        raise OSError(f"{path} cannot be written ({problem}); what was there before is untouched") from error
    finally:
        if handle >= 0:
            os.close(handle)
        if temporary is not None:
            Path(temporary).unlink(missing_ok=True)


def remove_unfinished(folder: Path) -> None:
    """Remove what killed processes left of ``atomic_path`` in ``folder`` and its subfolders."""
    _remove_abandoned(Path(folder).rglob(f".*{_UNFINISHED}"))


def _remove_abandoned(files: Iterator[Path]) -> None:
    """Remove the temporary files that no process is writing: their writer would hold a lock."""
    for file in list(files) if fcntl else ():
        with suppress(OSError), open(file, "rb") as opened:
            fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
            file.unlink()


def write_text(path: Path, text: str) -> None:
    """Write a text file completely or not at all."""
    # Restores a file name in the text that the locale could not decode.
    write_bytes(path, text.encode("utf-8", errors="surrogateescape"))


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file completely or not at all."""
    with atomic_path(path) as temporary:
        temporary.write_bytes(content)
