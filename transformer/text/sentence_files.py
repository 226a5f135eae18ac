"""Files of sentences: plain text, one sentence per line. ``sentences/en.txt`` is part of this package."""

import hashlib
from collections.abc import Iterable
from pathlib import Path

from transformer.disk.plain_files import read_plain
from transformer.errors import InputError, MessageError, text_of

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
        raise InputError(f"There is no file {path}; give a text file with one sentence per line.")
    try:
        sentences = split_sentences(as_text(read_plain(path)))
    except MessageError as error:
        raise InputError(text_of(error)) from error
    except UnicodeDecodeError as error:
        raise InputError(
            f"{path} is not UTF-8 text ({text_of(error)}); save it as UTF-8, one sentence per line."
        ) from error
    if not sentences:
        raise InputError(f"{path} contains no sentence; write one per line.")
    return sentences


def sentence_digest(sentences: Iterable[str]) -> str:
    """Return the first 12 hexadecimal digits of the SHA-256 of the sentences, one per line.

    It identifies this list in this order.
    """
    return hashlib.sha256("".join(f"{sentence}\n" for sentence in sentences).encode("utf-8", "replace")).hexdigest()[
        :12
    ]
