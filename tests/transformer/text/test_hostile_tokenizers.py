"""Broken or malicious tokenizer folders: a sentence about each, without any harm."""

from __future__ import annotations

import json
import resource
import struct
import subprocess
import threading
from pathlib import Path

import psutil
import pytest

from tests.transformer.text.foreign_folders import TEXTS, byte_level, opened, unigram, word_piece, write
from transformer.errors import CheckpointError, InputError
from transformer.system.python_process import start_python
from transformer.text.guests import connection, files

FILE = {"tokenizer_class": "PreTrainedTokenizerFast"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write(tmp_path, {"model_type": "gpt2"}, FILE, byte_level(special=("<|endoftext|>",)))


def change(folder: Path, parts: dict) -> None:
    """Return a tokenizer file; arguments whose names begin with ``model_`` go into the model."""
    file = folder / "tokenizer.json"
    content = json.loads(file.read_text())
    for name, value in parts.items():
        (content["model"] if name.startswith("model_") else content)[name.removeprefix("model_")] = value
    file.write_text(json.dumps(content))


def replaced(pattern: dict, content: str) -> dict:
    return {"type": "Replace", "pattern": pattern, "content": content}


def sequence(*steps: object) -> dict:
    return {"normalizer": {"type": "Sequence", "normalizers": list(steps)}}


def children() -> list[psutil.Process]:
    process = connection._nursery._process
    return psutil.Process(process.pid).children() if process is not None else []


DOUBLED = sequence(*[replaced({"String": "a"}, "aa")] * 30)


def test_a_file_that_is_too_long(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = folder / "tokenizer.json"
    file.write_bytes(b" " * 2000)
    monkeypatch.setattr(files, "MAX_BYTES", 1000)
    with pytest.raises(CheckpointError, match="it has 2,000 bytes; at most 1,000 are read"):
        opened(folder)


def test_a_configuration_with_fewer_ids_than_the_tokenizer(folder: Path) -> None:
    with pytest.raises(CheckpointError, match="gives ids up to 399, but config.json says vocab_size 300"):
        opened(folder, vocab_size=300)
    tokenizer = byte_level()
    tokenizer.add_special_tokens(["<pad>"])
    tokenizer.save(str(folder / "tokenizer.json"))
    assert 400 not in opened(folder, vocab_size=400).special  # an added token that no text can contain


def test_more_entries_than_are_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MAX_ENTRIES", 300)
    with pytest.raises(CheckpointError, match="its vocabulary has 400 entries; at most 300 are read"):
        opened(folder)


def test_a_panic_of_the_library_is_an_error(tmp_path: Path) -> None:
    folder = write(tmp_path, {}, FILE, unigram(("<unk>",), "<unk>"))
    change(folder, {"model_unk_id": 10**6})
    with pytest.raises(CheckpointError):
        opened(folder)
    change(folder, {"model_unk_id": None})
    with pytest.raises(CheckpointError):
        opened(folder).encode("€ is no entry")


UNPICKLED = """
import io, os, pickle, sys
from pickle import loads
import numpy
from transformer.text.guests.process import _import_libraries

class Bomb:
    def __reduce__(self):
        return os.mkdir, (sys.argv[1],)

file = io.BytesIO()
numpy.save(file, numpy.array([Bomb()]), allow_pickle=True)
bomb = pickle.dumps(Bomb())
_import_libraries()
ways = [
    lambda: loads(bomb),
    lambda: pickle.load(io.BytesIO(bomb)),
    lambda: pickle.Unpickler(io.BytesIO(bomb)).load(),
    lambda: pickle._Unpickler(io.BytesIO(bomb)).load(),
    lambda: numpy.load(io.BytesIO(file.getvalue()), allow_pickle=True),
]
for way in ways:
    try:
        way()
    except ValueError as error:
        print(error)
assert loads(pickle.dumps({"the": [1, 2.0, None]})) == {"the": [1, 2.0, None]}
"""


def test_a_pickle_that_names_code_is_refused_in_every_way_of_reading_it(tmp_path: Path) -> None:
    """No tokenizer of transformers reads one today; if one does, it finds plain data or an error."""
    made = tmp_path / "made-by-a-pickle"
    with start_python("-c", UNPICKLED, str(made), stdout=subprocess.PIPE, text=True) as process:
        printed = process.communicate(timeout=60)[0]
    assert process.returncode == 0 and printed.split("\n")[:-1] == ["pickles are not read"] * 5 and not made.exists()


@pytest.mark.slow
@pytest.mark.sample("reads")
@pytest.mark.parametrize("reads", ["encode", "encode_target", "words"])
def test_a_text_that_grows_without_end_ends_its_process_alone(
    reads: str, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twenty letters would have twenty thousand million."""
    monkeypatch.setattr(connection, "GIGABYTES", 0.4)
    other = opened(write(_made(tmp_path / "other"), {"model_type": "bert"}, None, word_piece()))
    change(folder, DOUBLED)
    hostile = opened(folder)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(InputError, match=r"for a text of 20 characters, or makes millions .* Take a shorter"):
        getattr(hostile, reads)("a" * 20)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000  # KB
    assert getattr(hostile, reads)("b")  # the tokenizer runs in another process
    assert other.encode("The cat")


@pytest.mark.slow
def test_a_text_that_takes_for_ever_ends_its_process_alone(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """WordPiece tries every end of a word at every position."""
    monkeypatch.setattr(connection, "TEXT_SECONDS", 1)
    word_piece().save(str(folder / "tokenizer.json"))
    change(folder, {"model_max_input_chars_per_word": 10**9, "model_vocab": {"[UNK]": 0, "a": 1, "##a": 2}})
    hostile = opened(folder)
    with pytest.raises(InputError, match=r"more than 1 seconds or 2 GB for a text of 40,000 characters"):
        hostile.encode("a" * 40_000)
    assert hostile.encode("aa") == [1, 2]


def test_opening_has_a_limit(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "OPENING_SECONDS", 0.001)
    monkeypatch.setattr(connection, "_WAITING", 100_000)
    with pytest.raises(CheckpointError, match="opening it takes more than 0.001 seconds or 2 GB"):
        opened(folder)


def test_the_process_ends_with_the_tokenizer(folder: Path) -> None:
    before = {child.pid for child in children()}
    tokenizer = opened(folder)
    (own,) = [child for child in children() if child.pid not in before]
    text = tokenizer.decode(tokenizer.encode("a cat"))
    del tokenizer
    own.wait(timeout=60)
    assert text == "a cat"


def test_a_process_that_was_killed_is_begun_again(folder: Path) -> None:
    before = {child.pid for child in children()}
    tokenizer = opened(folder)
    expected = tokenizer.encode("The cat")
    for child in children():
        if child.pid not in before:
            child.kill()
            child.wait(timeout=60)
    with pytest.raises(InputError):
        tokenizer.encode("The cat")
    assert tokenizer.encode("The cat") == expected


def test_many_threads_ask_at_once(folder: Path) -> None:
    tokenizer = opened(folder)
    expected = [tokenizer.encode(text) for text in TEXTS]
    found: dict[int, list] = {}
    threads = [
        threading.Thread(target=lambda n=n: found.setdefault(n, [tokenizer.encode(text) for text in TEXTS]))
        for n in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(ids == expected for ids in found.values()) and len(found) == 6
    assert tokenizer.encode_many(TEXTS) == expected


def test_many_added_tokens_are_read_in_time(folder: Path) -> None:
    added = {str(400 + n): {"content": f"x{n}", "special": True} for n in range(2000)}
    (folder / "tokenizer_config.json").write_text(json.dumps(FILE | {"added_tokens_decoder": added}))
    assert len(opened(folder, vocab_size=2400).special) > 2000


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


def entry(text: str, score: float = -1.0, type: int = 1) -> bytes:
    return field(1, field(1, text.encode()) + varint(2 << 3 | 5) + struct.pack("<f", score) + field(3, type))


TEXT = "".join(chr(0x4E00 + number) for number in range(120))
SENTENCEPIECE = {
    "twice": [entry("a"), entry("b"), entry("a")],
    "empty": [entry("a"), entry("", type=4)],
    "NaN": [entry("a", float("nan"))],
    "infinite": [entry("a", float("-inf"))],
    "a length that lies": [field(1, b"\x0a\xff\xff\xff\x7fa")],
    "millions": [b"\x0a\x00" * 300_000],
    "every part of one text": [entry(TEXT[start:end]) for start in range(120) for end in range(start + 1, 121)],
    "given everywhere": [entry("a" * length, -length, 4) for length in range(1, 257)],
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", [1, 2], ids=["Unigram", "BPE"])
@pytest.mark.sample("what", of=4)
@pytest.mark.parametrize("what", SENTENCEPIECE)
def test_lying_sentencepiece_files_are_refused_or_read(what: str, kind: int, tmp_path: Path) -> None:
    folder = write(tmp_path, {"model_type": "llama" if kind == 2 else "t5"}, None, None)
    file = folder / ("tokenizer.model" if kind == 2 else "spiece.model")
    unknown = entry("<unk>", 0.0, 2)
    file.write_bytes(unknown + b"".join(SENTENCEPIECE[what]) + field(2, field(3, kind)) + field(3, field(4, 0)))
    try:
        assert opened(folder).encode("a" * 400)
    except (CheckpointError, InputError) as error:
        assert len(str(error)) < 700


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder
