"""Reader for GGUF files (llama.cpp, Ollama, LM Studio): a header of keys and tensors, then numbers.

The header is parsed here, and every count and length is compared with the bytes that are left: the library ``gguf``
takes two seconds and 150 MB for 49,000 entries, and trusts the file. Numbers are unpacked by the library, some rows of
a tensor at a time. Nothing is mapped into memory, because truncating a mapped file would end the process (SIGBUS).
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from transformer.disk.plain_files import WatchedFile
from transformer.errors import CheckpointError

MAGIC = b"GGUF"
INSTALL = "pip install gguf"
_VERSIONS = (2, 3)
_MAX_KEYS, _MAX_TENSORS, _MAX_AXES, _LONGEST_NAME = 10_000, 20_000, 4, 300
# Type → format character of struct.
_SCALARS = dict(zip((0, 1, 2, 3, 4, 5, 6, 7, 10, 11, 12), "BbHhIifBQqd", strict=True))
_BOOL, _TEXT, _LIST = 7, 8, 9
_LONGEST_VALUE = 2**27  # bytes; entries and merges of a large vocabulary take 2**23
_MOST_ENTRIES = 2**21  # of all lists of one file; a large vocabulary has 2**18, and twice as many merges
_ROWS_AT_ONCE = 2**22  # numbers of a tensor that are unpacked at a time
_PART = re.compile(r"(.*)-(\d{5})-of-(\d{5})\.gguf")


@dataclass(frozen=True)
class _Tensor:
    file: int
    shape: tuple[int, ...]
    type: int
    start: int


def is_gguf(path: Path) -> bool:
    """Return whether a file is GGUF by its first bytes, since Ollama's blobs have no extension."""
    try:
        if not path.is_file():  # opening a pipe would block
            return False
        with open(path, "rb") as content:
            return content.read(4) == MAGIC
    except OSError:
        return False


def parts_of(path: Path) -> list[Path]:
    """Return the file itself, or all parts of a split one: ``name-00001-of-00003.gguf``."""
    if (found := _PART.fullmatch(path.name)) is None:
        return [path]
    name, _, count = found.groups()
    return [path.with_name(f"{name}-{number:05}-of-{count}.gguf") for number in range(1, min(int(count), 1000) + 1)]


class GgufFile:
    """An open GGUF file.

    Attributes:
        keys: Values of the header: numbers, texts and lists of them, each read on demand (``get``).
        tensors: Name → shape, in numpy's order (the last axis is contiguous).

    Raises:
        CheckpointError: If this is not a GGUF file, or it is incomplete, inconsistent, or changes while open.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._parts: list[WatchedFile] = []
        self._keys: dict[str, tuple[int, int, int]] = {}
        self._tensors: dict[str, _Tensor] = {}
        for part in parts_of(path):
            self._open(part)

    def get(self, name: str, default: object = None) -> object:
        """Return the value of a key in the header, or ``default``."""
        if name not in self._keys:
            return default
        file, type, place = self._keys[name]
        return _Walk(self._parts[file], place).value(type)

    def __contains__(self, name: str) -> bool:
        return name in self._keys

    @property
    def tensors(self) -> dict[str, tuple[int, ...]]:
        """Name → shape of every tensor."""
        return {name: tensor.shape for name, tensor in self._tensors.items()}

    def read(self, name: str) -> np.ndarray:
        """Return a tensor's numbers as a new float32 array."""
        from gguf.quants import dequantize

        tensor = self._tensors[name]
        rows, width = prod(tensor.shape[:-1]), tensor.shape[-1]
        kind, row_bytes = self._kind(name)
        part = self._parts[tensor.file]
        found = np.empty((rows, width), np.float32)
        step = max(1, _ROWS_AT_ONCE // width)
        for start in range(0, rows, step):
            count = min(step, rows - start)
            packed = part.read(tensor.start + start * row_bytes, count * row_bytes)
            found[start : start + step] = dequantize(np.frombuffer(packed, np.uint8).reshape(count, row_bytes), kind)
        part.check_unchanged()
        return found.reshape(tensor.shape)

    def types(self) -> list[str]:
        """Return the formats of the numbers, the most frequent first: "Q4_K", "F32"."""
        from gguf import GGMLQuantizationType

        sizes: dict[str, int] = {}
        for tensor in self._tensors.values():
            kind = GGMLQuantizationType(tensor.type).name
            sizes[kind] = sizes.get(kind, 0) + prod(tensor.shape)
        return sorted(sizes, key=lambda kind: -sizes[kind])

    def _open(self, part: Path) -> None:
        opened = WatchedFile(part, _unreadable)
        self._parts.append(opened)
        walk = _Walk(opened, 0)
        if walk.take(4) != MAGIC:
            raise _unreadable(part, f"it does not begin with {MAGIC.decode()}")
        if (version := walk.number("I")) not in _VERSIONS:
            raise _unreadable(part, f"it has version {version}; 2 and 3 are read")
        n_tensors, n_keys = walk.number("Q"), walk.number("Q")
        if n_keys > _MAX_KEYS or n_tensors > _MAX_TENSORS:
            raise _unreadable(part, f"it has {n_keys:,} keys and {n_tensors:,} tensors, more than any model")
        for _ in range(n_keys):
            name, code = walk.name(), walk.number("I")
            self._keys.setdefault(name, (len(self._parts) - 1, code, walk.place))
            walk.skip(code)
        found = [self._tensor(walk) for _ in range(n_tensors)]
        aligned = self.get("general.alignment", 32)
        if type(aligned) is not int or not 1 <= aligned <= 2**16:
            raise _unreadable(part, f"it says alignment {aligned!r}")
        first = -(-walk.place // aligned) * aligned
        for name, shape, kind, offset in found:
            if name in self._tensors:
                raise _unreadable(part, f"it holds {name} twice")
            self._tensors[name] = _Tensor(len(self._parts) - 1, shape, kind, first + offset)
            if first + offset + prod(shape[:-1]) * self._kind(name)[1] > opened.size:
                raise _unreadable(part, f"it ends within {name}")

    def _tensor(self, walk: _Walk) -> tuple[str, tuple[int, ...], int, int]:
        name, n_axes = walk.name(), walk.number("I")
        if not 1 <= n_axes <= _MAX_AXES:
            raise _unreadable(self.path, f"{name} has {n_axes} axes")
        shape = tuple(walk.number("Q") for _ in range(n_axes))[::-1]
        if min(shape) < 1:
            raise _unreadable(self.path, f"{name} has the shape {shape}")
        return name, shape, walk.number("I"), walk.number("Q")

    def _kind(self, name: str) -> tuple[Any, int]:
        """Return how a tensor is packed, and how many bytes a row takes."""
        try:
            from gguf import GGML_QUANT_SIZES, GGMLQuantizationType
        except ImportError as error:
            raise CheckpointError(f"{self.path} is a GGUF file; to read it, install: {INSTALL}") from error
        tensor = self._tensors[name]
        try:
            kind = GGMLQuantizationType(tensor.type)
            block, size = GGML_QUANT_SIZES[kind]
        except (KeyError, ValueError) as error:
            raise _unreadable(self.path, f"{name} is packed as type {tensor.type}, which is not known") from error
        if tensor.shape[-1] % block:
            raise _unreadable(self.path, f"{name} has the shape {tensor.shape}")
        return kind, tensor.shape[-1] // block * size


class _Walk:
    """A position in a file that advances with every read."""

    def __init__(self, part: WatchedFile, place: int) -> None:
        self._part, self.place = part, place
        self._n_entries = 0  # of the lists that were skipped

    def take(self, count: int) -> bytes:
        """Read ``count`` bytes."""
        if count > _LONGEST_VALUE:
            raise self._unreadable(f"it has a value of {count:,} bytes")
        found = self._part.read(self.place, count)
        self.place += count
        return found

    def _pass(self, count: int) -> None:
        """Advance without reading."""
        if count > self._part.size - self.place:
            raise self._unreadable("it ends too early")
        self.place += count

    def number(self, letter: str) -> int:
        """Read one number in a format of struct."""
        return struct.unpack("<" + letter, self.take(struct.calcsize("<" + letter)))[0]

    def name(self) -> str:
        """Read one name."""
        length = self.number("Q")
        if length > _LONGEST_NAME:
            raise self._unreadable(f"it has a name of {length:,} characters")
        return self._text(self.take(length))

    def value(self, type: int) -> object:
        """Read one value of a GGUF type."""
        if type in _SCALARS:
            found = self.number(_SCALARS[type])
            return bool(found) if type == _BOOL else found
        if type == _TEXT:
            return self._text(self.take(self.number("Q")))
        inner, count = self._list(type)
        if inner == _TEXT:
            return [self._text(self.take(self.number("Q"))) for _ in range(count)]
        letter = _SCALARS[inner]
        return list(struct.unpack(f"<{count}{letter}", self.take(count * struct.calcsize("<" + letter))))

    def skip(self, type: int) -> None:
        """Advance past one value of a GGUF type."""
        if type in _SCALARS:
            self._pass(struct.calcsize("<" + _SCALARS[type]))
        elif type == _TEXT:
            self._pass(self.number("Q"))
        else:
            inner, count = self._list(type)
            self._n_entries += count
            if self._n_entries > _MOST_ENTRIES:
                raise self._unreadable(f"its lists have {self._n_entries:,} entries, more than any model")
            if inner != _TEXT:
                self._pass(count * struct.calcsize("<" + _SCALARS[inner]))
            else:
                for _ in range(count):
                    self._pass(self.number("Q"))

    def _list(self, type: int) -> tuple[int, int]:
        if type != _LIST:
            raise self._unreadable(f"it has a value of type {type}, which is not known")
        inner, count = self.number("I"), self.number("Q")
        if inner not in _SCALARS and inner != _TEXT:
            raise self._unreadable(f"it has a list of type {inner}, which is not known")
        if count > self._part.size:
            raise self._unreadable("it ends too early")
        return inner, count

    def _unreadable(self, problem: str) -> CheckpointError:
        return _unreadable(self._part.path, problem)

    def _text(self, raw: bytes) -> str:
        return raw.decode("utf-8", errors="replace")


def files_of(folder: Path) -> Iterator[Path]:
    """Yield the GGUF files of a folder; for a split file, its first part."""
    for file in sorted(folder.glob("*.gguf")):
        if (found := _PART.fullmatch(file.name)) is None or int(found[2]) == 1:
            yield file


def _unreadable(file: Path, problem: str) -> CheckpointError:
    return CheckpointError(f"{file} is not a GGUF file that can be read: {problem}")
