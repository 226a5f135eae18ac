"""Text files of a checkpoint, read up to a limit, since a link to a device has no end."""

import json
import os
import re
import stat
import tomllib
from io import BufferedReader
from pathlib import Path
from typing import Any

from transformer.errors import MessageError, text_of

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


def check_plain(file: Path) -> None:
    """Check that a file is regular before a library opens it by name; raises what ``open_plain`` raises."""
    if not stat.S_ISREG(os.stat(file).st_mode):
        raise MessageError(f"{file} is not a regular file")


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
