"""Reading the files of a Hugging Face tokenizer: never more than these limits, every refusal with the file's name."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from transformer.disk.plain_files import read_plain
from transformer.errors import CheckpointError, InputError, MessageError
from transformer.text.message import Message

MAX_BYTES = 64_000_000
MAX_ENTRIES = 300_000
MAX_MERGES = 4 * MAX_ENTRIES  # SentencePiece's: every way to cut a piece into two is a merge
MAX_LISTS, MAX_OBJECTS = 2_000_000, 100_000  # Gemma's merges are 580,000 lists; an added token is an object

Made = TypeVar("Made")


def unreadable(file: Path, problem: object) -> CheckpointError:
    return CheckpointError("{file} is not a tokenizer that can be read: {problem}", file=file, problem=problem)


def read_bytes(file: Path) -> bytes:
    """Raises ``CheckpointError`` for a file that is missing, no plain file, or larger than ``MAX_BYTES``."""
    try:
        size = file.stat().st_size
        if size > MAX_BYTES:
            raise unreadable(
                file,
                Message("it has {bytes} bytes; at most {most} are read", bytes=f"{size:,}", most=f"{MAX_BYTES:,}"),
            )
        return read_plain(file, MAX_BYTES)
    except MessageError as error:
        if isinstance(error, CheckpointError):
            raise
        raise CheckpointError("{problem}", problem=error) from error
    except OSError as error:
        raise unreadable(file, error.strerror or str(error)) from error


def read_text(file: Path) -> str:
    try:
        return read_bytes(file).decode("utf-8")
    except UnicodeDecodeError as error:
        raise unreadable(file, error) from error


def read_object(file: Path) -> dict:
    """The JSON object of a file."""
    text = read_text(file)
    for sign, most in (("[", MAX_LISTS), ("{", MAX_OBJECTS)):
        if (count := text.count(sign)) > most:  # making so many objects stops the whole server for seconds
            what = {"count": f"{count:,}", "sign": sign, "most": f"{most:,}"}
            raise unreadable(file, Message("it has {count} times {sign}; at most {most} are read", **what))
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        if isinstance(error, CheckpointError):
            raise
        raise unreadable(file, Message("it is not valid JSON ({problem})", problem=error)) from error
    if not isinstance(content, dict):
        raise unreadable(file, Message("it does not contain a JSON object"))
    return content


def read_object_if_there(file: Path) -> dict:
    return read_object(file) if file.is_file() else {}


def read_entries(file: Path) -> dict[str, int]:
    """A vocabulary as JSON: piece → id."""
    entries = read_object(file)
    check_entries(file, entries)
    return entries


def read_lines(file: Path) -> dict[str, int]:
    """A vocabulary with one piece a line (BERT's ``vocab.txt``); the line's number is the id."""
    entries = {line.rstrip(): id for id, line in enumerate(read_text(file).removesuffix("\n").split("\n"))}
    check_entries(file, entries)
    return entries


def read_merges(file: Path) -> list[list[str]]:
    """The learned merges, one a line, the earliest first (GPT-2's ``merges.txt``)."""
    lines = read_text(file).removesuffix("\n").split("\n")
    return [line.split(" ") for line in lines if line and not line.startswith("#version")]


def check_entries(file: Path, entries: object) -> None:
    """Raises ``CheckpointError`` where ``entries`` do not map pieces to ids, or are too many."""
    if not isinstance(entries, dict) or not entries:
        raise unreadable(file, Message("it contains no vocabulary"))
    check_count(file, len(entries))
    if wrong := [id for id in entries.values() if type(id) is not int or not 0 <= id < MAX_ENTRIES]:
        raise unreadable(file, Message("its vocabulary has the id {id}; ids are integers ≥ 0", id=repr(wrong[0])))


def check_count(file: Path, count: int) -> None:
    if count > MAX_ENTRIES:
        raise unreadable(
            file,
            Message(
                "its vocabulary has {count} entries; at most {most} are read",
                count=f"{count:,}",
                most=f"{MAX_ENTRIES:,}",
            ),
        )


def guarded(file: Path, make: Callable[[], Made]) -> Made:
    """What ``make`` gives; whatever the tokenizers library raises, panics included, becomes a ``CheckpointError``.
    An ``InputError`` stays one: what is wrong is the text.

    A panic of the library is no ``Exception``: it would pass every ``except Exception`` and end the server's run.
    """
    try:
        return make()
    except (CheckpointError, InputError):
        raise
    except BaseException as error:
        if isinstance(error, (KeyboardInterrupt, SystemExit, GeneratorExit)):
            raise
        raise unreadable(file, str(error) or type(error).__name__) from error
