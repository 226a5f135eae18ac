"""A third-party tokenizer file is plain byte-level BPE of limited size, or it is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from transformer import CheckpointError, Tokenizer
from transformer.text.tokenizer_files import LONGEST_ENTRY, MAX_BYTES, MAX_ENTRIES


@pytest.fixture
def file(tiny_tokenizer: Tokenizer, tmp_path: Path) -> Path:
    tiny_tokenizer.save(tmp_path / "tokenizer.json")
    return tmp_path / "tokenizer.json"


def change(file: Path, **parts: object) -> None:
    """Return a tokenizer file; arguments whose names begin with ``model_`` go into the model."""
    content = json.loads(file.read_text())
    for name, value in parts.items():
        (content["model"] if name.startswith("model_") else content)[name.removeprefix("model_")] = value
    file.write_text(json.dumps(content))


def test_what_training_writes_is_read(file: Path, tiny_tokenizer: Tokenizer) -> None:
    assert Tokenizer.load(file).pieces == tiny_tokenizer.pieces


@pytest.mark.slow
@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"normalizer": {"type": "Replace", "pattern": {"Regex": "(a+)+$"}, "content": ""}}, "it has a normalizer"),
        ({"padding": {"strategy": {"Fixed": 10**9}}}, "it has a padding"),
        ({"truncation": {"max_length": 1}}, "it has a truncation"),
        ({"post_processor": {"type": "ByteLevel"}}, "it has a post_processor"),
        ({"pre_tokenizer": {"type": "Split", "pattern": {"Regex": "(a+)+$"}}}, "its pre_tokenizer is not supported"),
        ({"pre_tokenizer": None}, "its pre_tokenizer is not supported"),
        ({"model_dropout": 0.5}, "its model has dropout 0.5"),
        ({"model_type": "Unigram"}, "no byte-pair encoding"),
        ({"model": [1]}, "no byte-pair encoding"),
        ({"model_vocab": []}, "lacks vocab or merges"),
        ({"model_vocab": {"a": 0}, "model_merges": [["a", "a"]] * 3}, "it has 3 merges for 1 entries"),
        ({"model_vocab": {"a" * (LONGEST_ENTRY + 1): 0}, "model_merges": []}, "its longest entry has 513 characters"),
        ({"model_vocab": {str(i): i for i in range(MAX_ENTRIES + 1)}}, "its vocabulary has 200,001 entries"),
        ({"model_vocab": {"a": 0, "b": 1}, "model_merges": [["a", "b"]]}, r"its merge \"\['a', 'b'\]\" does not join"),
        ({"model_merges": [["no", "such"]]}, "does not join two entries to a third"),
        ({"model_merges": [3]}, "its merge '3' does not join"),
        ({"model_merges": ["a b c"]}, "its merge 'a b c' does not join"),
        ({"model_vocab": {"a": 0, "b": 2**70}, "model_merges": []}, "has the id 1180591620717411303424"),
        ({"model_vocab": {"a": 0, "b": -1}, "model_merges": []}, "has the id -1; ids are integers"),
        ({"model_vocab": {"a": "0"}, "model_merges": []}, "has the id '0'"),
        ({"added_tokens": [{"id": 7, "content": "the"}]}, "not a tokenizer that can be read"),
        ({"added_tokens": 3}, "not a tokenizer that can be read"),
        ({"decoder": {"type": "no such"}}, "not a tokenizer that can be read"),
        ({"version": "9"}, "not a tokenizer that can be read"),
    ],
)
def test_more_than_plain_byte_level_bpe_is_refused(parts: dict, message: str, file: Path) -> None:
    change(file, **parts)
    with pytest.raises(CheckpointError, match=message):
        Tokenizer.load(file)


@pytest.mark.parametrize("content", [b"", b"[]", b"null", b"\xff\xfe", b"[" * 200_000, b'{"model": {"type": "BPE"}}'])
def test_files_that_are_something_else(content: bytes, file: Path) -> None:
    file.write_bytes(content)
    with pytest.raises(CheckpointError, match="not a tokenizer that can be read"):
        Tokenizer.load(file)


def test_a_huge_file_is_not_opened(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with file.open("r+b") as opened:
        opened.truncate(MAX_BYTES + 1)  # a sparse file: nothing is written to the disk
    monkeypatch.setattr(Path, "read_text", lambda *_, **__: pytest.fail("the file was read"))
    with pytest.raises(CheckpointError, match="it has 32,000,001 bytes; at most 32,000,000 are read"):
        Tokenizer.load(file)
