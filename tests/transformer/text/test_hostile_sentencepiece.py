"""SentencePiece files that somebody wrote to harm: refused in a sentence, or read within bounds of time and memory."""

from __future__ import annotations

import struct
import time
import tracemalloc
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.transformer.text.foreign_folders import opened, write
from transformer import CheckpointError
from transformer.errors import InputError
from transformer.text.foreign.files import MAX_ENTRIES
from transformer.text.foreign.sentencepiece_file import PieceType, read_sentencepiece
from transformer.text.foreign.sentencepiece_model import SentencePieceModel
from transformer.text.foreign.steps import bounded

LONG = "a" * 400


def varint(value: int) -> bytes:
    parts = []
    while value >= 128:
        parts.append(value & 127 | 128)
        value >>= 7
    return bytes([*parts, value])


def field(number: int, value: bytes | int) -> bytes:
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def entry(text: str, score: float = -1.0, type: int = PieceType.NORMAL) -> bytes:
    return field(1, field(1, text.encode()) + varint(2 << 3 | 5) + struct.pack("<f", score) + field(3, int(type)))


def charsmap(rules: dict[str, str]) -> bytes:
    """A double-array trie of one-byte rules: the root's children lie at the byte, each with a value behind it."""
    units, texts = [0] * 1024, b""
    for place, (letter, replacement) in enumerate(rules.items()):
        byte = ord(letter)
        value = 256 + 256 * place
        units[byte] = byte | 1 << 8 | (value ^ byte) << 10
        units[value] = len(texts) | 1 << 31
        texts += replacement.encode() + b"\0"
    return struct.pack("<I", 4 * len(units)) + struct.pack(f"<{len(units)}I", *units) + texts


def written(folder: Path, entries: Iterable[bytes], *, kind: int = 1, table: bytes = b"") -> Path:
    file = folder / "spiece.model"
    unknown = entry("<unk>", 0.0, PieceType.UNKNOWN)
    file.write_bytes(unknown + b"".join(entries) + field(2, field(3, kind)) + field(3, field(2, table) + field(4, 0)))
    return file


@pytest.mark.parametrize(
    ("entries", "words"),
    [
        ([entry("a"), entry("b"), entry("a")], "it has the entry 'a' twice, or empty"),
        ([entry("a"), entry("", type=PieceType.USER_DEFINED)], "it has the entry '' twice, or empty"),
        ([entry("a", float("nan"))], r"its entry \('a', nan\) is not a piece with a score"),
        ([entry("a", float("-inf"))], r"its entry \('a', -inf\) is not a piece with a score"),
        ([entry(f"{number:x}".rjust(200, "x")) for number in range(20_001)], "4,000,205 characters together"),
        ([field(1, b"\x0a\x01a" * 1000)], "it is not a SentencePiece file, or it is incomplete"),
        ([field(1, b"\x0a\xff\xff\xff\x7fa")], "it is not a SentencePiece file, or it is incomplete"),
        ([b"\x0a\x00" * 2_000_000], f"it has more than {MAX_ENTRIES + 100:,} fields"),
    ],
    ids=["twice", "empty", "NaN", "infinite", "characters", "fields", "a length that lies", "millions"],
)
@pytest.mark.parametrize("kind", [1, 2], ids=["Unigram", "BPE"])
def test_lying_entries_are_refused_in_a_sentence(entries: list[bytes], words: str, kind: int, tmp_path: Path) -> None:
    file = written(tmp_path, entries, kind=kind)
    before = time.process_time()
    with pytest.raises(CheckpointError, match=words) as caught:
        read_sentencepiece(file)
    assert "spiece.model" in str(caught.value)
    assert time.process_time() - before < 5


def test_a_file_that_ends_anywhere_is_read_or_refused(tmp_path: Path) -> None:
    whole = written(
        tmp_path, [entry("a"), entry("ab", 3e38), entry("b", -3e38)], table=charsmap({"x": "a"})
    ).read_bytes()
    for end in range(0, len(whole), 7):
        (tmp_path / "spiece.model").write_bytes(whole[:end])
        try:
            assert "".join(SentencePieceModel(read_sentencepiece(tmp_path / "spiece.model")).pieces("ab")).endswith("b")
        except CheckpointError as error:
            assert "spiece.model" in str(error)


def test_a_letter_that_becomes_a_thousand_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="a text of 1,000 characters; at most 64 are read"):
        read_sentencepiece(written(tmp_path, [entry("a")], table=charsmap({"x": "a" * 1000})))
    file = read_sentencepiece(written(tmp_path, [entry("a")], table=charsmap({"x": "a" * 64})))
    model = SentencePieceModel(file)
    assert model.normalize("xbx") == "▁" + "a" * 64 + "b" + "a" * 64
    with pytest.raises(InputError, match=r"text of 20,000 characters into more than 200,000"):
        bounded(model.words, model.pieces)("x" * 20_000)


@pytest.mark.parametrize("kind", [1, 2], ids=["Unigram", "BPE"])
@pytest.mark.parametrize("type", [PieceType.NORMAL, PieceType.USER_DEFINED], ids=["normal", "given"])
def test_pieces_that_fit_everywhere_take_no_minutes(kind: int, type: PieceType, tmp_path: Path) -> None:
    """400 letters, 256 pieces that begin at each, and 20,000 that do not: candidates by the hundred thousand."""
    entries = [entry("a" * length, -length, type) for length in range(1, 257)]
    entries += [entry(f"a{number}", type=type) for number in range(20_000)]
    model = SentencePieceModel(read_sentencepiece(written(tmp_path, entries, kind=kind)))
    before = time.process_time()
    tracemalloc.start()
    try:
        assert "".join(model.pieces(LONG)) == "▁" + LONG
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert time.process_time() - before < 20 and most < 8e6


def test_merges_without_end_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every part of one text is a piece: each can be cut anywhere into two others."""
    text = "".join(chr(0x4E00 + number) for number in range(20))
    parts = [text[start:end] for start in range(20) for end in range(start + 1, 21)]
    for module in ("checks", "sentencepiece_spec"):
        monkeypatch.setattr(f"transformer.text.foreign.{module}.MAX_MERGES", 1000)
    folder = write(tmp_path, {"model_type": "llama"}, None, None)
    file = written(folder, [entry(part) for part in parts], kind=2)
    file.rename(folder / "tokenizer.model")
    with pytest.raises(CheckpointError, match="it has more than 1,000 merges"):
        opened(folder)
