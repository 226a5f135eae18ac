"""Reading the text files of a checkpoint up to a limit, since a link may lead to a device without end."""

import json
import os
import re
import stat
import tomllib
import weakref
from collections.abc import Callable
from io import BufferedReader
from pathlib import Path
from typing import Any

from transformer.errors import CheckpointError, MessageError, text_of

# Names that Windows reserves for devices, with any extension.
RESERVED = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", re.IGNORECASE)
MAX_TEXT_BYTES = 20_000_000  # for config, card and tables; the largest of a known model has 2 MB


def read_plain(file: Path, most: int = MAX_TEXT_BYTES) -> bytes:
    """Return the content of a regular file.

    Raises:
        ValueError: If it is a device, a pipe or a folder, or has more than ``most`` bytes.
        OSError: If it does not exist.
    """
    with open_plain(file) as opened:
        content = opened.read(most + 1)  # the size is not trusted, since a file may grow while it is read
    if len(content) > most:
        raise MessageError(f"{file} has more than {most:,} bytes, which is the limit")
    return content


def open_plain(file: Path) -> BufferedReader:
    """Open a regular file for reading.

    Raises:
        ValueError: If it is a device, a pipe or a folder.
        OSError: If it cannot be opened.
    """
    # A pipe would block.
    handle = os.open(file, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    opened = os.fdopen(handle, "rb") if stat.S_ISREG(os.fstat(handle).st_mode) else None
    if opened is None:
        os.close(handle)
        raise MessageError(f"{file} is not a regular file")
    return opened


class WatchedFile:
    """An open regular file whose reads are complete, and which knows whether it was written to since.

    It is closed together with this object, or by ``close``. ``unreadable`` turns the file and a problem into an error.

    Raises:
        CheckpointError: If it cannot be opened, ends too early, or changes while it is open.
    """

    def __init__(self, path: Path, unreadable: Callable[[Path, str], CheckpointError]) -> None:
        self.path, self._unreadable = path, unreadable
        try:
            self._content = open_plain(path)
        except (OSError, ValueError) as error:
            raise CheckpointError(text_of(error)) from error
        self.close = weakref.finalize(self, self._content.close)
        self._state = self._current_state()
        self.size = self._state[0]

    def read(self, start: int, count: int) -> bytes:
        """Return exactly ``count`` bytes from ``start`` on."""
        if count > self.size - start:  # before anything is allocated
            raise self._unreadable(self.path, "it ends too early")
        try:
            self._content.seek(start)
            found = self._content.read(count)
        except OSError as error:
            raise self._unreadable(self.path, text_of(error)) from error
        if len(found) < count:
            raise self._unreadable(self.path, "it ends too early")
        return found

    def fill(self, start: int, into: memoryview) -> None:
        """Read as many bytes from ``start`` on as ``into`` holds."""
        try:
            self._content.seek(start)
            while len(into) and (count := self._content.readinto(into)):
                into = into[count:]
        except OSError as error:
            raise self._unreadable(self.path, text_of(error)) from error
        if len(into):
            raise self._unreadable(self.path, "it ends too early")

    def check_unchanged(self) -> None:
        """Check that the file has not changed since it was opened."""
        if self._current_state() != self._state:
            raise self._unreadable(self.path, "it was changed while it was read; open it again")

    def _current_state(self) -> tuple[int, int]:
        status = os.fstat(self._content.fileno())
        return status.st_size, status.st_mtime_ns


def read_plain_text(file: Path, most: int = MAX_TEXT_BYTES) -> str:
    """Return a file's content as UTF-8 text; raises what ``read_plain`` raises, or ``ValueError``."""
    return read_plain(file, most).decode("utf-8").replace("\r\n", "\n")


def parse_toml(text: str) -> dict[str, Any]:
    """Parse TOML.

    Raises:
        tomllib.TOMLDecodeError: If the text is not TOML, or nested too deeply.
    """
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        raise
    except ValueError as error:
        raise tomllib.TOMLDecodeError(str(error)) from None
    except RecursionError:
        raise tomllib.TOMLDecodeError("its values are nested too deeply") from None


def json_object(path: Path) -> dict:
    """Return the JSON object of a file.

    Raises:
        ValueError: If it is not a JSON object; the message names the file and the problem.
    """
    try:
        values = json.loads(read_plain_text(path))
    except MessageError:  # its message names the file already
        raise
    except (ValueError, RecursionError) as error:
        raise MessageError(f"{path} is not valid JSON: {text_of(error)}") from error
    if not isinstance(values, dict):
        raise MessageError(f"{path} must contain a JSON object, not {type(values).__name__}")
    return values
