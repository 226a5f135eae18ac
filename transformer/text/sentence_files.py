"""Files of sentences: plain text, one sentence per line. ``sentences/en.txt`` is part of this package."""

import hashlib
from collections.abc import Iterable
from pathlib import Path

from transformer.disk.plain_files import read_plain
from transformer.errors import InputError, MessageError

SHIPPED = Path(__file__).parent / "sentences" / "en.txt"


def as_text(content: bytes) -> str:
    """Decode the content of a file.

    Raises:
        UnicodeDecodeError: If it is not UTF-8 or contains a zero byte, which no text does.
    """
    text = content.decode("utf-8")
    if "\0" in text:
        place = content.index(0)
        raise UnicodeDecodeError("utf-8", content, place, place + 1, "a zero byte, which no text holds")
    return text


def split_sentences(text: str) -> tuple[str, ...]:
    """Return the sentences of a text, one per line, stripped; empty lines are left out."""
    return tuple(line.strip() for line in text.removeprefix("\ufeff").splitlines() if line.strip())


def read_sentences(path: str | Path = SHIPPED) -> tuple[str, ...]:
    """Read the sentences of a UTF-8 file.

    Raises:
        InputError: If the file is missing, empty or not text.
    """
    path = Path(path)
    if not path.is_file():
        raise InputError("There is no file {path}; give a text file with one sentence per line.", path=path)
    try:
        sentences = split_sentences(as_text(read_plain(path)))
    except MessageError as error:
        raise InputError("{path} cannot be read: {problem}", path=path, problem=error) from error
    except UnicodeDecodeError as error:
        raise InputError(
            "{path} is not UTF-8 text ({problem}); save it as UTF-8, one sentence per line.", path=path, problem=error
        ) from error
    if not sentences:
        raise InputError("{path} contains no sentence; write one per line.", path=path)
    return sentences


def sentence_digest(sentences: Iterable[str]) -> str:
    """Return the first 12 hexadecimal digits of the SHA-256 of the sentences, one per line.

    It identifies this list in this order.
    """
    return hashlib.sha256("".join(f"{sentence}\n" for sentence in sentences).encode("utf-8", "replace")).hexdigest()[
        :12
    ]
