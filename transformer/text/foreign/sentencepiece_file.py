"""Reading a SentencePiece file (Kudo & Richardson 2018): pieces with scores, and how a text is normalised.

The file is a protocol buffer: fields, each with a number and a kind. Only the fields that decide about ids are read,
two levels deep, and every length is checked against what is left.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from math import isfinite
from pathlib import Path

from transformer.text.foreign.files import MAX_ENTRIES, check_count, read_bytes, unreadable
from transformer.text.foreign.steps import check_charsmap
from transformer.text.message import Message

LONGEST_PIECE = 256  # characters; a run of spaces has some dozens in known vocabularies
MAX_CHARACTERS = 4_000_000  # of all pieces together; Gemma's 256,000 have half of it
_FIELDS_OF_A_PIECE = 8  # its text, score and type


class PieceType(IntEnum):
    NORMAL = 1
    UNKNOWN = 2
    CONTROL = 3
    USER_DEFINED = 4
    UNUSED = 5
    BYTE = 6


@dataclass(frozen=True)
class SentencePieceFile:
    """``pieces``, ``scores`` and ``types`` by id. ``charsmap``: the table of characters that normalising replaces."""

    file: Path
    pieces: tuple[str, ...]
    scores: tuple[float, ...]
    types: tuple[int, ...]
    kind: str
    unknown_id: int
    byte_fallback: bool
    names: dict[str, str]
    charsmap: bytes
    space_in_front: bool
    joins_spaces: bool

    def of_type(self, *types: PieceType) -> tuple[str, ...]:
        return tuple(piece for piece, type in zip(self.pieces, self.types, strict=True) if type in types)


def read_sentencepiece(file: Path) -> SentencePieceFile:
    """Raises ``CheckpointError`` for a file that is broken, or of another model than Unigram or byte-pair encoding."""
    try:
        whole = _grouped(read_bytes(file), file=file)
        check_count(file, len(whole.get(1, [])))
        pieces = [_piece(file, data) for data in whole.get(1, [])]
        _check_pieces(file, [piece for piece, _, _ in pieces])
        trainer = _grouped(_last(whole, 2, b""))
        normalizer = _grouped(_last(whole, 3, b""))
        kind = {1: "Unigram", 2: "BPE"}.get(_last(trainer, 3, 1))
        if kind is None or not pieces or _last(trainer, 24, 0) or not _last(normalizer, 5, 1):
            raise unreadable(file, Message("it is not a SentencePiece file of a supported kind"))
        names = {"unk_token": (45, "<unk>"), "bos_token": (46, "<s>"), "eos_token": (47, "</s>")}
        absent = {"bos_token": (41, 1), "eos_token": (42, 2)}
        if charsmap := _last(normalizer, 2, b""):
            check_charsmap(file, charsmap)
        return SentencePieceFile(
            file=file,
            pieces=tuple(piece for piece, _, _ in pieces),
            scores=tuple(score for _, score, _ in pieces),
            types=tuple(type for _, _, type in pieces),
            kind=kind,
            unknown_id=_last(trainer, 40, 0),
            byte_fallback=bool(_last(trainer, 35, 0)),
            names={
                name: _last(trainer, field, default.encode()).decode("utf-8")
                for name, (field, default) in names.items()
                if name not in absent or 0 <= _last(trainer, *absent[name]) < 2**31
            },
            charsmap=charsmap,
            space_in_front=bool(_last(normalizer, 3, 1)),
            joins_spaces=bool(_last(normalizer, 4, 1)),
        )
    except (IndexError, struct.error, UnicodeDecodeError, TypeError, AttributeError) as error:
        raise unreadable(file, Message("it is not a SentencePiece file, or it is incomplete")) from error


def _piece(file: Path, data: bytes) -> tuple[str, float, int]:
    fields = _grouped(data, most=_FIELDS_OF_A_PIECE)
    piece, score = _last(fields, 1, b"").decode("utf-8"), struct.unpack("<f", _last(fields, 2, b"\0\0\0\0"))[0]
    if not isfinite(score):
        raise unreadable(
            file, Message("its entry {entry} is not a piece with a score", entry=repr((piece, score))[:60])
        )
    return piece, score, _last(fields, 3, int(PieceType.NORMAL))


def _check_pieces(file: Path, pieces: list[str]) -> None:
    """What the SentencePiece library refuses, too (no text, one text twice), and what would take minutes and memory."""
    if (longest := max(map(len, pieces), default=0)) > LONGEST_PIECE:
        what = {"count": f"{longest:,}", "most": LONGEST_PIECE}
        raise unreadable(file, Message("its longest entry has {count} characters; at most {most} are read", **what))
    if (count := sum(map(len, pieces))) > MAX_CHARACTERS:
        what = {"count": f"{count:,}", "most": f"{MAX_CHARACTERS:,}"}
        raise unreadable(file, Message("its entries have {count} characters together; at most {most} are read", **what))
    seen: set[str] = set()
    for piece in pieces:
        if not piece or piece in seen:
            raise unreadable(file, Message("it has the entry {entry} twice, or empty", entry=repr(piece)[:60]))
        seen.add(piece)


def _last(fields: dict[int, list], number: int, default: int | bytes) -> int | bytes:
    """The last value of a field counts; one of another kind than expected is no SentencePiece."""
    value = fields.get(number, [default])[-1]
    if type(value) is not type(default):
        raise TypeError
    return value


def _grouped(data: bytes, *, most: int = MAX_ENTRIES + 100, file: Path | None = None) -> dict[int, list]:
    """The values of every field. ``file``: whose entries these are, where there may be too many to read."""
    found: dict[int, list] = {}
    for count, (number, value) in enumerate(_fields(data)):
        if count >= most:
            if file is not None:
                raise unreadable(file, Message("it has more than {most} fields", most=f"{most:,}"))
            raise IndexError
        found.setdefault(number, []).append(value)
    return found


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    position = 0
    while position < len(data):
        key, position = _varint(data, position)
        match key & 7:
            case 0:
                value, position = _varint(data, position)
                yield key >> 3, value
                continue
            case 1:
                length = 8
            case 2:
                length, position = _varint(data, position)
            case 5:
                length = 4
            case _:
                raise IndexError
        if length > len(data) - position:
            raise IndexError  # a length that lies
        yield key >> 3, data[position : position + length]
        position += length


def _varint(data: bytes, position: int) -> tuple[int, int]:
    """Seven bits a byte, the lowest first; the highest bit of a byte says that another follows."""
    value = 0
    for index in range(10):
        byte = data[position + index]
        value |= (byte & 127) << (7 * index)
        if byte < 128:
            return value, position + index + 1
    raise IndexError
