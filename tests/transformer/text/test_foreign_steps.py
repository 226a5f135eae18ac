"""Steps of a tokenizer from elsewhere that would fill the memory, or take for ever on some text, are refused."""

from __future__ import annotations

import json
import resource
import struct
import time
from base64 import b64encode
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from tokenizers.normalizers import Precompiled

from tests.transformer.text.foreign_folders import TEXTS, byte_level, opened, unigram, word_piece, write
from transformer.errors import CheckpointError, InputError
from transformer.text.foreign.checks import check_content
from transformer.text.foreign.files import MAX_OBJECTS, read_object
from transformer.text.foreign.sentencepiece_file import read_sentencepiece
from transformer.text.foreign.split_expressions import KNOWN, is_safe
from transformer.text.foreign.steps import (
    LARGEST_TRIE,
    LONGEST_RESULT,
    MAX_GROWTH,
    MOST_STEPS,
    bounded,
    check_charsmap,
    check_steps,
    steps_of,
)
from transformer.text.foreign.tokenizer import open_tokenizer
from transformer.text.message import Message, message_of

FILE = Path("tokenizer.json")


def replace(pattern: dict, content: str) -> dict:
    return {"type": "Replace", "pattern": pattern, "content": content}


def normalizers(*steps: object) -> dict:
    return {"normalizer": {"type": "Sequence", "normalizers": list(steps)}}


def table(*texts: str) -> dict:
    """A step with SentencePiece's table of characters, whose trie holds nothing."""
    content = struct.pack("<I1024x", 1024) + b"".join(text.encode() + b"\0" for text in texts)
    return {"type": "Precompiled", "precompiled_charsmap": b64encode(content).decode()}


DOUBLE = replace({"String": "a"}, "aa")
BYTES = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
ALBERT = normalizers(
    replace({"String": "``"}, '"'),
    replace({"String": "''"}, '"'),
    {"type": "NFKD"},
    {"type": "StripAccents"},
    {"type": "Lowercase"},
    table("x" * 18),
    replace({"Regex": " {2,}"}, " "),
)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (normalizers(*[DOUBLE] * 30), "its steps can make a text 1,073,741,824 times as long"),
        (normalizers(*[replace({"Regex": "b*"}, "x")] * 30), "its steps can make a text"),
        (
            normalizers(replace({"String": " "}, "\ufdfa"), {"type": "NFKD"}, *[DOUBLE] * 2),
            "a text 1,296 times",
        ),
        (normalizers(*[{"type": "BertNormalizer"}] * 9), "its steps can make a text 19,683 times"),
        (normalizers(*[BYTES] * 6), "its steps can make a text 4,096 times"),
        ({"pre_tokenizer": {"type": "Sequence", "pretokenizers": [BYTES] * 6}}, "can make a text 4,096 times"),
        (normalizers(table("x" * 60), table("x" * 60)), "can make a text 3,600 times"),
        (normalizers(table("x" * 65)), "its normalizer has a text of 65 characters; at most 64 are read"),
        (normalizers({"type": "Precompiled", "precompiled_charsmap": "AAA"}), "its table of characters is incomplete"),
        (normalizers({"type": "Precompiled", "precompiled_charsmap": "/////w=="}), "table of characters is incomplete"),
        (normalizers({"type": "Precompiled", "precompiled_charsmap": 7}), "its table of characters is incomplete"),
        (normalizers(replace({"String": "a"}, "b" * 10**6)), "has a text of 1,000,000 characters; at most 64"),
        (normalizers({"type": "Prepend", "prepend": "b" * 10**6}), "has a text of 1,000,000 characters; at most 64"),
        (normalizers(replace({"String": ""}, "x")), "its normalizer looks for an empty text"),
        (normalizers(*[{"type": "NFC"}] * MOST_STEPS), f"has {MOST_STEPS + 1} steps; at most {MOST_STEPS} are run"),
        (normalizers(*[normalizers()["normalizer"]] * 10**5), "its normalizer has 100,001 steps"),
        ({"normalizer": {"type": ["NFC"]}}, r"has the step \['NFC'\], which is not known"),
        ({"pre_tokenizer": {"type": "Split", "pattern": {"String": "a" * 10**5}}}, "a text of 100,000 characters"),
    ],
)
def test_what_would_fill_the_memory_is_refused_at_once(content: dict, message: str) -> None:
    started = time.process_time()
    with pytest.raises(CheckpointError, match=message) as caught:
        check_steps(FILE, content)
    assert isinstance(message_of(caught.value), Message)
    assert time.process_time() - started < 1


def test_steps_of_known_files_pass() -> None:
    check_steps(FILE, ALBERT)
    check_steps(FILE, normalizers({"type": "Prepend", "prepend": "▁"}, replace({"String": " "}, "▁")))
    for backend in (byte_level(), word_piece(), unigram(("<unk>",), "<unk>")):
        check_steps(FILE, json.loads(backend.to_str()))


def test_the_bound_holds_for_what_passes() -> None:
    """No text gets longer than the product that is counted."""
    from tokenizers import Tokenizer, models

    steps = normalizers(DOUBLE, {"type": "NFKD"}, replace({"Regex": "b*"}, "x"), {"type": "Prepend", "prepend": "▁▁"})
    check_steps(FILE, steps)
    backend = Tokenizer(models.BPE())
    backend = Tokenizer.from_str(json.dumps(json.loads(backend.to_str()) | steps))
    for text in ("a" * 50, "\ufdfa" * 50, "b", "x" * 50):
        assert len(backend.normalizer.normalize_str(text)) <= MAX_GROWTH * len(text)


@pytest.mark.parametrize("reads", ["encode", "encode_target", "words"])
def test_a_long_text_that_grows_is_refused_before_it_fills_the_memory(reads: str, tmp_path: Path) -> None:
    """40,000 characters, the most of one text, would be 9.6 million and 2 GB."""
    steps = normalizers(replace({"String": "a"}, "b" * 30), replace({"String": "b"}, "ab" * 4))
    settings = {"tokenizer_class": "PreTrainedTokenizerFast"}  # whose steps are those of its file
    file = write(tmp_path, {"model_type": "gpt2"}, settings, byte_level()) / "tokenizer.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | steps))
    read = getattr(opened(tmp_path), reads)
    assert read("a" * 20)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(InputError, match=r"text of 40,000 characters into more than 200,000, .* Take a shorter"):
        read("a" * 40_000)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000  # KB


def test_what_may_grow_but_does_not_is_read_whole() -> None:
    most = LONGEST_RESULT + 1
    assert bounded(lambda text: [text], len)("a" * most) == most
    assert bounded(lambda text: [2 * text], len)("a" * (LONGEST_RESULT // 2)) == LONGEST_RESULT // 2
    with pytest.raises(InputError):
        bounded(lambda text: [2 * text], len)("a" * (LONGEST_RESULT // 2 + 200))


def test_sequences_inside_of_sequences_are_read_in_order() -> None:
    inner = normalizers({"type": "NFC"}, {"type": "NFD"})["normalizer"]
    steps = steps_of(normalizers({"type": "Lowercase"}, inner, {"type": "Strip"}), "normalizer")
    assert [step["type"] for step in steps] == ["Lowercase", "NFC", "NFD", "Strip"]


@pytest.mark.parametrize(
    "expression",
    ["a+b", "a*a*b", "a+*b", r"a\g<0>*\g<0>*b", r"(?:a|a)*", "a{99999}{99999}", "a{1,100000}", "(a+)+$", r"\s*x?\s*y"]
    + [r"[a&&[b]]", "a|b+c", "", "x" * 41, r"\k<0>", "(?=a)", ["a"]],
)
def test_expressions_that_may_try_again_are_not_run(expression: object) -> None:
    assert not is_safe(expression)


@pytest.mark.parametrize("expression", sorted(KNOWN))
def test_known_expressions_take_time_in_proportion_to_the_text(expression: str) -> None:
    from tokenizers import Regex, pre_tokenizers

    split = pre_tokenizers.Split(Regex(expression), "isolated")
    started = time.process_time()
    for part in ("a", "A", " ", "\n", "1", "'", "!", "aA", " \n", "e\u0301", "字", " a"):
        split.pre_tokenize_str(part * (20_000 // len(part)) + "\x01")
    assert time.process_time() - started < 6


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (
            {"type": "Unigram", "unk_id": 0, "vocab": [["<unk>", 0.0], ["a", float("nan")]]},
            "is not a piece with a score",
        ),
        ({"type": "Unigram", "unk_id": 0, "vocab": [["<unk>", float("-inf")]]}, "is not a piece with a score"),
        (
            {"type": "Unigram", "vocab": [[f"{n:01990d}", 0.0] for n in range(4100)]},
            "has 8,159,000 characters",
        ),
        (
            {"type": "WordPiece", "vocab": {"a": 0}, "max_input_chars_per_word": 10**9},
            "per_word is 1000",
        ),
        ({"type": "WordPiece", "vocab": {"a": 0}, "max_input_chars_per_word": "9"}, "max_input_chars_per_word is '9'"),
        ({"type": "WordPiece", "vocab": {"a": 0}, "continuing_subword_prefix": "#" * 10**6}, "more than 64 characters"),
        (
            {"type": "BPE", "vocab": {"a": 0}, "merges": [], "unk_token": "u" * 65},
            "unk_token has more than 64",
        ),
    ],
)
def test_a_model_that_would_take_for_ever_is_refused(model: dict, message: str) -> None:
    with pytest.raises(CheckpointError, match=message):
        check_content(FILE, {"model": model})


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"extra_special_tokens": [f"<{n:0>998}>" for n in range(600)]}, "added_tokens has 600,0.. characters in all"),
        ({"extra_special_tokens": 7}, "its added tokens are not a list"),
        ({"added_tokens_decoder": {"²": {"content": "x"}}}, "have the id '²'"),
    ],
)
def test_added_tokens_that_would_take_for_ever_are_refused(tmp_path: Path, settings: dict, message: str) -> None:
    folder = write(tmp_path, {}, {"tokenizer_class": "PreTrainedTokenizerFast"} | settings, byte_level())
    with pytest.raises(CheckpointError, match=message):
        open_tokenizer(folder, config={}, generation={})


def test_many_added_tokens_are_named_in_time(tmp_path: Path) -> None:
    """Once compared with every token that has a job: 18 seconds."""
    jobs = {f"a{n}_token": f"b{n}" for n in range(4000)}
    added = {str(400 + n): {"content": f"x{n}", "special": True} for n in range(8000)}
    settings = {"tokenizer_class": "PreTrainedTokenizerFast", "added_tokens_decoder": added}
    folder = write(tmp_path, {}, settings | jobs, byte_level())
    started = time.process_time()
    assert len(open_tokenizer(folder, config={}, generation={}).special) > 8000
    assert time.process_time() - started < 4


def test_more_objects_than_a_tokenizer_has_are_not_made(tmp_path: Path) -> None:
    file = tmp_path / "tokenizer.json"
    file.write_text("[" + "{}," * MAX_OBJECTS + "{}]")
    with pytest.raises(CheckpointError, match="it has 100,001 times {; at most 100,000 are read"):
        read_object(file)


@pytest.mark.parametrize("data", [bytes(800_000), b"\x08\x01" * 400_000, b"\x0a\x05\x15\x00\x00\xc0\x7f"])
def test_a_sentencepiece_file_of_empty_fields_or_without_numbers_is_refused(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "spiece.model").write_bytes(data)
    started = time.process_time()
    with pytest.raises(CheckpointError, match="more than 300,100 fields|not a piece with a score"):
        read_sentencepiece(tmp_path / "spiece.model")
    assert time.process_time() - started < 3


def unit(offset: int = 0, byte: int = 0, *, ends: bool = False) -> int:
    """One number of a trie."""
    return offset << 10 | ends << 8 | byte


def characters(units: dict[int, int], texts: bytes, size: int = 256) -> bytes:
    """A table of characters with the given numbers at the given places of its trie."""
    return struct.pack(f"<I{size}I", 4 * size, *(units.get(place, 0) for place in range(size))) + texts


A, LEAF = ord("a"), 0x80  # the place of "a" below the root, and that of what stands for it
ENDS = {A: unit(A ^ LEAF, A, ends=True)}  # "a" is replaced by the text at the number at place LEAF


def test_the_table_of_a_sentencepiece_file_says_its_longest_text() -> None:
    assert check_charsmap(FILE, characters({}, b"abc\0de\0")) == 3
    with pytest.raises(CheckpointError, match="a text of 100 characters"):
        check_charsmap(FILE, characters({}, b"a" * 100))


HARMLESS = {
    "a rule": characters({**ENDS, LEAF: 1 << 31}, b"xyz\0"),
    "a circle": characters({A: unit(A, A)}, b"x\0"),
    "no zero at the end": characters({**ENDS, LEAF: 1 << 31}, b"xyz"),
    "the empty text at the end": characters({**ENDS, LEAF: 1 << 31 | 2}, b"x\0"),
}
OUT_OF_ITSELF = {
    "no trie": bytes(4) + b"abc\0",
    "a root that leads out": characters({0: unit(5000)}, b"abc\0"),
    "a child that leads out": characters({A: unit(0xFFFFF, A)}, b"x\0"),
    "an end that leads out": characters({A: unit(0xFFFFF, A, ends=True)}, b"x\0"),
    "a text behind the last": characters({**ENDS, LEAF: 1 << 31 | 999}, b"x\0"),
    "a text inside of a character": characters({**ENDS, LEAF: 1 << 31 | 1}, "é\0".encode()),
    "half a block": characters({}, b"x\0", size=100),
    "a megabyte": characters({}, b"x\0", size=300_000),
}


@pytest.mark.parametrize("what", OUT_OF_ITSELF)
def test_a_table_that_leads_out_of_itself_is_refused(what: str) -> None:
    """The tokenizers library would panic at the first text with an "a"."""
    with pytest.raises(CheckpointError, match="its table of characters leads out of itself"):
        check_charsmap(FILE, OUT_OF_ITSELF[what])


@pytest.mark.parametrize("what", HARMLESS)
def test_a_strange_table_does_no_harm(what: str) -> None:
    check_charsmap(FILE, HARMLESS[what])
    normalise = Precompiled(HARMLESS[what]).normalize_str
    for text in ("a", "aaab", "é a", "a" * 1000):
        assert len(normalise(text)) <= 3 * len(text)


def test_the_largest_table_with_circles_everywhere_takes_no_time() -> None:
    size = LARGEST_TRIE // 4
    content = struct.pack("<I", 4 * size) + np.arange(size, dtype="<u4").astype("<u4").tobytes()
    began = time.process_time()
    with suppress(CheckpointError):
        check_charsmap(FILE, content + b"x\0")
    assert time.process_time() - began < 5


def test_random_tables_are_refused_or_harmless() -> None:
    chance = np.random.default_rng(0)
    refused = 0
    for _ in range(200):
        units = {
            int(place): unit(int(chance.integers(0, 300)), int(place) & 255, ends=bool(chance.integers(2)))
            for place in chance.integers(0, 512, size=40)
        }
        content = characters(units, b"xy\0z\0", size=512)
        try:
            check_charsmap(FILE, content)
        except CheckpointError:
            refused += 1
            continue
        for byte in range(1, 128):
            Precompiled(content).normalize_str(chr(byte) * 3)
    assert 20 < refused < 200


def test_texts_of_every_kind_still_pass(tmp_path: Path) -> None:
    folder = write(tmp_path, {}, {"tokenizer_class": "PreTrainedTokenizerFast"}, byte_level())
    tokenizer = open_tokenizer(folder, config={}, generation={})
    assert all(tokenizer.decode(tokenizer.encode(text)) == text for text in TEXTS)
