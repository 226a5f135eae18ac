"""Tokenizer files from elsewhere: what is broken, too large or unknown is refused in one sentence."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.transformer.text.foreign_folders import byte_level, unigram, write
from transformer.errors import CheckpointError
from transformer.text.foreign import files
from transformer.text.foreign.split_expressions import KNOWN, is_safe
from transformer.text.foreign.tokenizer import open_tokenizer

FILE = {"tokenizer_class": "PreTrainedTokenizerFast"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write(tmp_path, {}, FILE, byte_level(special=("<|endoftext|>",)))


def change(folder: Path, parts: dict) -> None:
    """Parts whose names begin with ``model_`` go into the model."""
    file = folder / "tokenizer.json"
    content = json.loads(file.read_text())
    for name, value in parts.items():
        (content["model"] if name.startswith("model_") else content)[name.removeprefix("model_")] = value
    file.write_text(json.dumps(content))


def opened(folder: Path, **config: object) -> object:
    return open_tokenizer(folder, config={"model_type": "gpt2", **config}, generation={})


SPLIT = {"type": "Split", "behavior": "Isolated", "invert": False}


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"model": 3}, "its model is not BPE, WordPiece, WordLevel or Unigram"),
        ({"model_type": "Other"}, "its model is not BPE"),
        ({"model_dropout": 0.5}, "its model has dropout 0.5, which is not supported"),
        ({"model_end_of_word_suffix": "</w>"}, "its model has end_of_word_suffix '</w>'"),
        ({"model_vocab": []}, "it contains no vocabulary"),
        ({"model_vocab": {"a": -1}}, "has the id -1"),
        ({"model_vocab": {"a": "x"}}, "has the id 'x'"),
        ({"model_vocab": {"a" * 3000: 0}, "model_merges": []}, "its longest entry has 3,000 characters"),
        ({"model_merges": [["no", "such"]]}, "does not join two entries to a third"),
        ({"model_merges": 3}, "lacks vocab or merges"),
        ({"normalizer": {"type": "Script"}}, "its normalizer has the step 'Script'"),
        ({"normalizer": {"type": "Sequence", "normalizers": [{"type": "NFC"}, 7]}}, "has the step 7"),
        ({"pre_tokenizer": SPLIT | {"pattern": {"Regex": "(a+)+$"}}}, r"its pre_tokenizer has the expression '\(a\+"),
        ({"normalizer": {"type": "Replace", "pattern": {"Regex": "a*a*a*b"}, "content": ""}}, "has the expression"),
        ({"added_tokens": 3}, "its added tokens are not a list"),
        ({"added_tokens": [{"id": 3}]}, "its added token .* has no content"),
        ({"added_tokens": [7]}, "its added token 7 has no content"),
        ({"version": "9"}, "is not a tokenizer that can be read"),
        ({"normalizer": {"type": "Precompiled", "precompiled_charsmap": "////"}}, "is not a tokenizer"),
        ({"post_processor": {"type": "TemplateProcessing", "single": [{}]}}, "is not a tokenizer"),
    ],
)
def test_what_is_refused(folder: Path, parts: dict, message: str) -> None:
    change(folder, parts)
    with pytest.raises(CheckpointError, match=message):
        opened(folder)


def test_files_that_are_no_tokenizer(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = folder / "tokenizer.json"
    for content, message in (
        (b"{", "not valid JSON"),
        (b"[]", "not contain a JSON object"),
        (b"\xff", "utf-8"),
        (b"[" * 10**5, "not valid JSON"),
    ):
        file.write_bytes(content)
        with pytest.raises(CheckpointError, match=message):
            opened(folder)
    file.write_bytes(b" " * 2000)
    monkeypatch.setattr(files, "MAX_BYTES", 1000)
    with pytest.raises(CheckpointError, match="it has 2,000 bytes; at most 1,000 are read"):
        opened(folder)
    file.unlink()
    with pytest.raises(CheckpointError, match="it has no tokenizer.json and none of the older files"):
        opened(folder)


def test_settings_of_a_wrong_type(folder: Path) -> None:
    for settings in ({"added_tokens_decoder": {"x": {}}}, {"added_tokens_decoder": {"1": 3}}, {"pad_token": 3}):
        (folder / "tokenizer_config.json").write_text(json.dumps(FILE | settings))
        with pytest.raises(CheckpointError):
            opened(folder)


def test_a_configuration_with_fewer_ids_than_the_tokenizer(folder: Path) -> None:
    with pytest.raises(CheckpointError, match="gives ids up to 399, but config.json says vocab_size 300"):
        opened(folder, vocab_size=300)
    tokenizer = byte_level()
    tokenizer.add_special_tokens(["<pad>"])
    tokenizer.save(str(folder / "tokenizer.json"))
    assert 400 not in opened(folder, vocab_size=400).special  # an added token that no text can hold


def test_a_panic_of_the_library_is_an_error(tmp_path: Path) -> None:
    folder = write(tmp_path, {}, FILE, unigram(("<unk>",), "<unk>"))
    change(folder, {"model_unk_id": 10**6})
    with pytest.raises(CheckpointError):
        opened(folder)
    change(folder, {"model_unk_id": None})
    with pytest.raises(CheckpointError):
        opened(folder).encode("€ is no entry")


def test_only_harmless_expressions_are_run() -> None:
    assert all(is_safe(expression) for expression in KNOWN)
    assert all(is_safe(expression) for expression in (" {2,}", r"\s{2,}|[\n\r\t]", r"\p{N}", r"[^\S\n]+", "[0-9]"))
    assert not any(is_safe(expression) for expression in ("(a+)+$", "a*a*a*b", "(a|a)*", 3, "x" * 50))
