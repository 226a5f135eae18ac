"""How SentencePiece normalises a text before it looks for pieces: characters replaced by a table, spaces as ▁.

The table is a double-array trie (Aoe 1989) in one list of numbers, followed by the replacements, each ended by a zero.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable

from transformer.text.foreign.files import unreadable
from transformer.text.foreign.sentencepiece_file import PieceType, SentencePieceFile
from transformer.text.message import Message

SPACE = "▁"
_LONGEST = 256  # bytes that one rule may replace; known tables have no more than 12


class GivenPieces:
    """Pieces that are always taken where they stand in a text; of several the longest."""

    def __init__(self, pieces: Iterable[str]) -> None:
        self._pieces = frozenset(pieces)
        self._lengths = sorted(set(map(len, self._pieces)), reverse=True)

    def at(self, text: str, position: int) -> str:
        """The one that begins at ``position``, or nothing."""
        found = (text[position : position + length] for length in self._lengths)
        return next((part for part in found if part in self._pieces), "")

    def symbols(self, text: str) -> list[str]:
        """``text`` cut into these pieces and single characters."""
        cut, position = [], 0
        while position < len(text):
            cut.append(self.at(text, position) or text[position])
            position += len(cut[-1])
        return cut


class Normalizer:
    """``text → normalised text``, as the SentencePiece library does it."""

    def __init__(self, file: SentencePieceFile) -> None:
        self._file = file
        self._kept = GivenPieces(file.of_type(PieceType.USER_DEFINED))
        self._trie: tuple[int, ...] = ()
        self._replacements = b""
        if file.charsmap:
            try:
                (size,) = struct.unpack_from("<I", file.charsmap)
                self._trie = struct.unpack_from(f"<{size // 4}I", file.charsmap, 4)
            except struct.error as error:
                raise unreadable(file.file, Message("its table of characters is broken")) from error
            self._replacements = file.charsmap[4 + size :]

    def __call__(self, text: str) -> str:
        found: list[str] = []
        position, after_space = 0, self._file.joins_spaces
        while position < len(text):
            replaced, length = self._prefix(text, position)
            position += length
            if after_space:
                replaced = replaced.lstrip(" ")
            if replaced:
                found.append(replaced)
            if self._file.joins_spaces:
                after_space = replaced.endswith(" ") if replaced else after_space
        whole = "".join(found).replace(" ", SPACE)
        if text and self._file.space_in_front:
            whole = SPACE + whole
        return whole.rstrip(SPACE) if self._file.joins_spaces else whole

    def _prefix(self, text: str, position: int) -> tuple[str, int]:
        """What stands for the beginning of the rest, and how many characters that beginning has."""
        if kept := self._kept.at(text, position):
            return kept, len(kept)
        if self._trie and (match := self._longest_rule(text, position)):
            return match
        return text[position], 1

    def _longest_rule(self, text: str, position: int) -> tuple[str, int] | None:
        place = _offset(self._trie[0])
        best = None
        for length, character in enumerate(text[position : position + _LONGEST], start=1):
            for byte in character.encode("utf-8", "replace"):
                place ^= byte
                if place >= len(self._trie) or self._trie[place] & 0x800000FF != byte:
                    return best
                unit = self._trie[place]
                place ^= _offset(unit)
            if unit >> 8 & 1 and place < len(self._trie):  # a rule ends here
                start = self._trie[place] & 0x7FFFFFFF
                replacement = self._replacements[start : self._replacements.find(b"\0", start)]
                best = replacement.decode("utf-8", "replace"), length
        return best


def _offset(unit: int) -> int:
    return (unit >> 10) << ((unit & 512) >> 6)
