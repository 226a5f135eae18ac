"""The bytes that a piece of a vocabulary stands for, including its space, in three notations."""

from __future__ import annotations

import re
from collections.abc import Callable


def byte_alphabet() -> dict[int, str]:
    """Return one visible character per byte (Radford et al. 2019).

    Printable Latin-1 stays as it is; all other bytes move up from U+0100.
    """
    visible = [*range(33, 127), *range(161, 173), *range(174, 256)]
    hidden = [byte for byte in range(256) if byte not in visible]
    return {byte: chr(byte) for byte in visible} | {byte: chr(256 + i) for i, byte in enumerate(hidden)}


_BYTE = re.compile(r"<0x([0-9A-F]{2})>")
_CHARACTER_OF = byte_alphabet()
_BYTE_OF = {character: byte for byte, character in _CHARACTER_OF.items()}


def byte_level_bytes(piece: str) -> bytes:
    """Convert ``Ġthe`` to " the": each character of the byte alphabet is one byte."""
    if all(character in _BYTE_OF for character in piece):
        return bytes(_BYTE_OF[character] for character in piece)
    return piece.encode("utf-8", "replace")


def word_piece_bytes(piece: str) -> bytes:
    """Convert a WordPiece entry: ``##ing`` continues a word, every other entry begins one with a space."""
    text = piece[2:] if piece.startswith("##") and len(piece) > 2 else f" {piece}"
    return text.encode("utf-8", "replace")


def sentence_piece_bytes(piece: str) -> bytes:
    """Convert ``▁the`` to " the", and ``<0x0A>`` to a line break."""
    if found := _BYTE.fullmatch(piece):
        return bytes([int(found[1], 16)])
    return piece.replace("▁", " ").encode("utf-8", "replace")


BYTES_OF: dict[str, Callable[[str], bytes]] = {
    "byte-level": byte_level_bytes,
    "word pieces": word_piece_bytes,
    "SentencePiece": sentence_piece_bytes,
}

WRITTEN_AS: dict[str, Callable[[str], str]] = {
    "byte-level": lambda text: "".join(_CHARACTER_OF[byte] for byte in text.encode("utf-8", "replace")),
    "word pieces": lambda text: text[1:] if text.startswith(" ") else f"##{text}",
    "SentencePiece": lambda text: text.replace(" ", "▁"),
}
