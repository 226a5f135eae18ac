"""The bytes that a piece of a foreign vocabulary stands for, its space included."""

from __future__ import annotations

import re
from collections.abc import Callable

from transformer.text.tokenizer import byte_alphabet

_BYTE = re.compile(r"<0x([0-9A-F]{2})>")
_BYTE_OF = {character: byte for byte, character in byte_alphabet().items()}


def byte_level_bytes(piece: str) -> bytes:
    """``Ġthe`` → " the": a character of the byte alphabet for each byte."""
    if all(character in _BYTE_OF for character in piece):
        return bytes(_BYTE_OF[character] for character in piece)
    return piece.encode("utf-8", "replace")


def word_piece_bytes(piece: str) -> bytes:
    """``##ing`` goes on with a word, everything else begins one: a space stands before it."""
    text = piece[2:] if piece.startswith("##") and len(piece) > 2 else f" {piece}"
    return text.encode("utf-8", "replace")


def sentence_piece_bytes(piece: str) -> bytes:
    """``▁the`` → " the", ``<0x0A>`` → a line break."""
    if found := _BYTE.fullmatch(piece):
        return bytes([int(found[1], 16)])
    return piece.replace("▁", " ").encode("utf-8", "replace")


BYTES_OF: dict[str, Callable[[str], bytes]] = {
    "byte-level": byte_level_bytes,
    "word pieces": word_piece_bytes,
    "SentencePiece": sentence_piece_bytes,
}
