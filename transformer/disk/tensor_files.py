"""Reader for safetensors files that does not map them into memory.

The library maps the file: overwriting or truncating it during a read changes the numbers unnoticed or ends the whole
process (SIGBUS). Here every read requests a number of bytes and checks how many arrive.
"""

from __future__ import annotations

import json
from math import prod
from pathlib import Path
from typing import NamedTuple, TypeGuard

import torch
from torch import Tensor

from transformer.disk.plain_files import WatchedFile
from transformer.errors import CheckpointError, MessageError, text_of

LONGEST_HEADER = 2_000_000  # bytes; a tensor takes about 120, and parsing 16,000 of them half a second
LONGEST_NAME = 300  # characters
MAX_AXES = 8
HALVES = ("F16", "BF16")
FLOATS = ("F64", "F32", *HALVES)
_TORCH = {
    **{"F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16},
    **{"I64": torch.int64, "I32": torch.int32, "I16": torch.int16, "I8": torch.int8, "U8": torch.uint8},
    "BOOL": torch.bool,
}
_BITS = {name: 8 * type.itemsize for name, type in _TORCH.items()} | {
    **dict.fromkeys(("F8_E5M2", "F8_E4M3", "F8_E8M0", "F8_E4M3FNUZ", "F8_E5M2FNUZ"), 8),
    **{"F4": 4, "F6_E2M3": 6, "F6_E3M2": 6, "U16": 16, "U32": 32, "U64": 64, "C64": 64},
}


class StoredTensor(NamedTuple):
    """Location of one tensor in a file; ``start`` counts from the first byte after the header."""

    type: str
    shape: tuple[int, ...]
    start: int
    end: int


class TensorFile:
    """An open safetensors file, a context manager.

    Leaving the block without an error checks that the file has not been written to in the meantime.

    Attributes:
        tensors: Name → location.
        metadata: Texts that the file holds besides its tensors.

    Raises:
        CheckpointError: If the file is incomplete, has an invalid header, or changes while it is read.
    """

    def __init__(self, file: Path) -> None:
        self.file = Path(file)
        self._opened = WatchedFile(self.file, _not_whole)
        try:
            length = int.from_bytes(self._opened.read(0, 8), "little")
            if length > self._opened.size - 8:
                raise MessageError(f"its header has {length:,} bytes, more than the file")
            if length > LONGEST_HEADER:
                raise MessageError(f"its header has {length:,} bytes; at most {LONGEST_HEADER:,} are read")
            self._data = 8 + length
            header = self._opened.read(8, length)
            self.metadata, self.tensors = _parse_header(header, self._opened.size - self._data)
        except (ValueError, RecursionError) as error:
            self._opened.close()  # its error holds this object, and Windows deletes no open file
            if isinstance(error, CheckpointError):  # whose message names the file already
                raise
            raise _not_whole(self.file, text_of(error)) from error

    def __enter__(self) -> TensorFile:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None:
                self._opened.check_unchanged()
        finally:
            self._opened.close()

    def read(self, name: str) -> Tensor:
        """Return a tensor as a new array of the type in the file.

        Raises:
            KeyError: If the name is unknown.
        """
        found = self.tensors[name]
        check_type(self.file, name, found.type, tuple(_TORCH))
        tensor = torch.empty(prod(found.shape), dtype=_TORCH[found.type])
        if tensor.numel():
            self._opened.fill(self._data + found.start, tensor.view(torch.uint8).numpy().data)
        return tensor.reshape(found.shape)


def _not_whole(file: Path, problem: str) -> CheckpointError:
    return CheckpointError(f"{file} is not a complete safetensors file: {problem}")


def _parse_header(header: bytes, size: int) -> tuple[dict[str, str], dict[str, StoredTensor]]:
    """Return metadata and tensors of a header that precedes ``size`` bytes of numbers.

    Raises:
        ValueError: If it contradicts the size.
    """
    if header[:1] != b"{":
        raise MessageError("its header is not a JSON object")
    said = json.loads(header.decode("utf-8"), object_pairs_hook=_unique_pairs)
    metadata = said.pop("__metadata__", None) or {}
    if not isinstance(metadata, dict) or not all(isinstance(text, str) for text in metadata.values()):
        raise MessageError("its metadata are not texts")
    tensors = {name: _stored_tensor(name, entry) for name, entry in said.items()}
    end = 0
    for name, tensor in sorted(tensors.items(), key=lambda item: item[1][2:]):
        if tensor.start != end:
            raise MessageError(f"{name[:80]!r} does not begin where the tensor before it ends")
        end = tensor.end
    if end != size:
        raise MessageError(f"it has {size} bytes of numbers, and its header says {end}")
    return metadata, tensors


def _unique_pairs(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise MessageError("its header names something twice")
    return found


def _stored_tensor(name: str, entry: object) -> StoredTensor:
    short = repr(name[:80])
    if len(name) > LONGEST_NAME or not isinstance(entry, dict):
        raise MessageError(f"it has an unexpected tensor {short}")
    type, shape, offsets = entry.get("dtype"), entry.get("shape"), entry.get("data_offsets")
    if not (isinstance(type, str) and _are_counts(shape) and _are_counts(offsets)):
        raise MessageError(f"it has an unexpected tensor {short}")
    if type not in _BITS or len(shape) > MAX_AXES or len(offsets) != 2:
        raise MessageError(f"it has an unexpected tensor {short}")
    start, end = offsets
    if 8 * (end - start) != prod(shape) * _BITS[type]:
        raise MessageError(f"{short} of shape {tuple(shape)} and type {type} cannot have {end - start:,} bytes")
    return StoredTensor(type, tuple(shape), start, end)


def _are_counts(values: object) -> TypeGuard[list[int]]:
    return isinstance(values, list) and all(type(value) is int and 0 <= value < 2**63 for value in values)


def check_type(file: Path, name: str, type: str, known: tuple[str, ...] = FLOATS) -> None:
    """Check that the type of a tensor is among ``known``: floating-point numbers by default.

    Raises:
        CheckpointError: If it is not.
    """
    if type not in known:
        raise CheckpointError(f"{file} holds {name} as {type}; weights are {', '.join(known)}")
