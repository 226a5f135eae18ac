"""Text files of a checkpoint, read as far as such a file can be long: a link to a device has no end."""

import json
import os
import re
import stat
import tomllib
from io import BufferedReader
from pathlib import Path
from typing import Any

from transformer.errors import MessageError

# What Windows takes for a device, with any ending.
RESERVED = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", re.IGNORECASE)
MAX_TEXT_BYTES = 20_000_000  # config, card, tables: the largest of a known model has 2 MB


def read_plain(file: Path, most: int = MAX_TEXT_BYTES) -> bytes:
    """All of a regular file. Raises ``ValueError`` for one that is a device, a pipe or a folder, or has more than
    ``most`` bytes, and ``OSError`` for one that is not there."""
    with open_plain(file) as opened:
        content = opened.read(most + 1)  # and not its size: a file may grow while it is read
    if len(content) > most:
        raise MessageError("{path} has more than {most} bytes, and no more are read", path=file, most=f"{most:,}")
    return content


def open_plain(file: Path) -> BufferedReader:
    """Open a regular file for reading. Raises ``ValueError`` for a device, a pipe or a folder, and ``OSError``."""
    handle = os.open(file, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))  # a pipe would wait
    opened = os.fdopen(handle, "rb") if stat.S_ISREG(os.fstat(handle).st_mode) else None
    if opened is None:
        os.close(handle)
        raise MessageError("{path} is not a regular file", path=file)
    return opened


def check_plain(file: Path) -> None:
    """Before a library opens it by its name. Raises ``ValueError`` and ``OSError`` as ``read_plain`` does."""
    if not stat.S_ISREG(os.stat(file).st_mode):
        raise MessageError("{path} is not a regular file", path=file)


def read_plain_text(file: Path, most: int = MAX_TEXT_BYTES) -> str:
    """The same as text. Raises ``ValueError`` for what is no UTF-8, too."""
    return read_plain(file, most).decode("utf-8").replace("\r\n", "\n")


def parse_toml(text: str) -> dict[str, Any]:
    """Parse TOML. Raises ``tomllib.TOMLDecodeError`` for text that is none, values nested too deeply to be read and
    numbers of more digits than Python reads included."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        raise
    except ValueError as error:
        raise tomllib.TOMLDecodeError(str(error)) from None
    except RecursionError:
        raise tomllib.TOMLDecodeError("its values are nested too deeply") from None


def json_object(path: Path) -> dict:
    """The JSON object of a file. Raises ``ValueError`` that names the file and what is wrong in it."""
    try:
        values = json.loads(read_plain_text(path))
    except MessageError:  # which names the file
        raise
    except (ValueError, RecursionError) as error:
        raise MessageError("{path} is not valid JSON: {problem}", path=path, problem=error) from error
    if not isinstance(values, dict):
        raise MessageError("{path} must contain a JSON object, not {type}", path=path, type=type(values).__name__)
    return values
