"""Checkpoints made to break the server are refused in one short sentence, quickly, and not stored."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from transformer import CheckpointError
from transformer.disk.tensor_files import LONGEST_HEADER
from transformer.files.received_files import receive

FILES = ("config.json", "model.safetensors", "tokenizer.json")
SECONDS = 5  # seconds of processor time; each of these attacks used to take at least ten


@pytest.fixture
def files(checkpoints_folder: Path) -> dict[str, bytes]:
    return {name: (checkpoints_folder / "tiny-gpt" / name).read_bytes() for name in FILES}


def refused(files: dict[str, bytes], folder: Path, message: str) -> None:
    started = time.process_time()
    with pytest.raises(CheckpointError, match=message) as caught:
        receive(files, folder)
    assert time.process_time() - started < SECONDS
    assert len(str(caught.value)) < 700
    assert str(folder) not in str(caught.value)
    assert not folder.exists() or not list(folder.iterdir())


def safetensors(header: object, body: bytes, length: int | None = None) -> bytes:
    written = header if isinstance(header, bytes) else json.dumps(header).encode()
    return (len(written) if length is None else length).to_bytes(8, "little") + written + body


def empty(name: str, shape: list[int], end: int) -> dict:
    return {name: {"dtype": "F16", "shape": shape, "data_offsets": [end, end]}}


def same_bytes(header: dict[str, dict], ending: str) -> dict[str, dict]:
    """Return the tensors whose names have this ending, all with the numbers of the first one."""
    names = [name for name in header if name.endswith(ending)]
    return dict.fromkeys(names, header[names[0]])


WEIGHTS: dict[str, tuple[Callable[[dict, bytes], bytes], str]] = {
    "a length beyond the file": (lambda h, b: safetensors(h, b, length=2**40), "is not a complete safetensors file"),
    "no header": (lambda h, b: safetensors(b"", b), "is not a complete safetensors file"),
    "offsets that overlap": (
        lambda h, b: safetensors({name: part | {"data_offsets": [0, 48]} for name, part in h.items()}, b),
        "is not a complete safetensors file",
    ),
    "an offset below zero": (
        lambda h, b: safetensors(h | {"x": {"dtype": "F16", "shape": [1], "data_offsets": [-2, 0]}}, b),
        "is not a complete safetensors file",
    ),
    "a shape of 2^80 numbers": (
        lambda h, b: safetensors(h | {"x": {"dtype": "F16", "shape": [2**40, 2**40], "data_offsets": [0, 2]}}, b),
        "is not a complete safetensors file",
    ),
    "an empty tensor of a huge shape": (
        lambda h, b: safetensors(h | empty("x", [0, 2**62], len(b)), b),
        r"it has an unknown x \(0, 4611686018427387904\)",
    ),
    "the same tensor twice": (
        lambda h, b: safetensors(json.dumps(h)[:-1].encode() + b", " + json.dumps(h)[1:].encode(), b + b),
        "is not a complete safetensors file",
    ),
    "a tensor too many": (lambda h, b: safetensors(h | empty("x", [0], len(b)), b), r"it has an unknown x \(0,\)"),
    "whole numbers": (
        lambda h, b: safetensors({name: part | {"dtype": "I16"} for name, part in h.items()}, b),
        "as I16; weights are F64, F32, F16, BF16",
    ),
    "lists inside of lists": (
        lambda h, b: safetensors(b'{"a":' + b"[" * 10**6 + b"]" * 10**6 + b"}", b),
        "is not a complete safetensors file|its header has",
    ),
    "a million tensors": (
        lambda h, b: safetensors(
            {name: part for n in range(10**5) for name, part in empty(f"t{n}", [0], 0).items()}, b""
        ),
        r"its header has [\d,]+ bytes; at most 2,000,000 are read",
    ),
    "as many tensors as a header may name": (
        lambda h, b: safetensors(
            {name: part for n in range(25_000) for name, part in empty(f"t{n}", [0], 0).items()}, b""
        ),
        "does not fit its config.json: it lacks",
    ),
    "a million notes": (
        lambda h, b: safetensors(h | {"__metadata__": {f"key {n}": "x" * 20 for n in range(10**5)}}, b),
        "its header has",
    ),
    "a million axes": (
        lambda h, b: safetensors(h | empty("x", [0] * 500_000, len(b)), b),
        "unexpected tensor 'x'",
    ),
    "a name as long as a book": (
        lambda h, b: safetensors(h | empty("x" * 10**6, [0], len(b)), b),
        "an unexpected tensor 'xxx",
    ),
    "two tensors of the same bytes": (
        lambda h, b: safetensors(h | same_bytes(h, "query_projection.weight"), b),
        "does not begin where the tensor before it ends",
    ),
    "a header of spaces": (lambda h, b: safetensors(b" " * (LONGEST_HEADER + 1), b), "its header has 2,000,001 bytes"),
}


@pytest.mark.slow
@pytest.mark.parametrize("attack", WEIGHTS)
def test_weights(attack: str, files: dict[str, bytes], tmp_path: Path) -> None:
    make, message = WEIGHTS[attack]
    raw = files["model.safetensors"]
    end = 8 + int.from_bytes(raw[:8], "little")
    header = {name: part for name, part in json.loads(raw[8:end]).items() if name != "__metadata__"}
    refused({**files, "model.safetensors": make(header, raw[end:])}, tmp_path / "kept", message)


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        (
            {"decoder": {"type": "Replace", "pattern": {"Regex": "(a|b)*" * 20_000}, "content": ""}},
            "its decoder is not",
        ),
        ({"decoder": {"type": "Sequence", "decoders": [{"type": "Fuse"}] * 50_000}}, "its decoder is not ByteLevel"),
        ({"decoder": {"type": "ByteLevel", "x": "y" * 10**6}}, "its decoder is not ByteLevel"),
        ({"decoder": 7}, "its decoder is not ByteLevel"),
        ({"added_tokens": [{"id": 5, "content": f"{n:01000d}"} for n in range(20_000)]}, "added tokens besides <pad>"),
        ({"added_tokens": [{"id": 5, "content": ["<pad>"]}]}, "it has added tokens besides <pad>"),
        ({"more": [{}] * 150_000}, "it has 150,0.. times {; at most 100,000 are read"),
    ],
)
def test_a_tokenizer(parts: dict, message: str, files: dict[str, bytes], tmp_path: Path) -> None:
    content = json.loads(files["tokenizer.json"]) | parts
    refused({**files, "tokenizer.json": json.dumps(content).encode()}, tmp_path / "kept", message)


@pytest.mark.parametrize(
    "change",
    [
        {"n_heads": -4},
        {"n_heads": True},
        {"d_model": 2**62},
        {"d_model": 24.0},
        {"d_ff": 10**400},
        {"dropout": float("nan")},
        {"dropout": 10**400},
        {"layer_norm_epsilon": float("inf")},
        {"positions": ["learned"]},
        {"kind": {}},
        {"class_names": "ab"},
        {"class_names": {"a": [[[[]]]]}},
        {"pad_id": 10**30},
        {"max_length": None},
        {"n_decoder_layers": 255, "d_ff": 1},
        {"tie_embeddings": "yes"},
        {"..": 1},
    ],
)
def test_a_config(change: dict, files: dict[str, bytes], tmp_path: Path) -> None:
    config = json.loads(files["config.json"]) | change
    refused({**files, "config.json": json.dumps(config).encode()}, tmp_path / "kept", "config")


@pytest.mark.parametrize(
    "name",
    ["mоdel.safetensors", "config.json ", "config.json.", "CONFIG.JSON", "config\u200b.json", "ｃonfig.json", ".", "\n"]
    + ["model.safetensors/", "C:\\config.json", "config.json\u202e", "<img src=x>", "a" * 5000, "\ud800"],
)
def test_a_name_that_only_looks_like_one(name: str, files: dict[str, bytes], tmp_path: Path) -> None:
    started = {**files, name: b"{}"}
    with pytest.raises(CheckpointError, match="^.{1,500} is not a file of a checkpoint"):
        receive(started, tmp_path / "kept")
    assert not (tmp_path / "kept").exists()
