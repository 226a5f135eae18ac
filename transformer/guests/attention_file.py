"""A file of attention maps that another program recorded: NPZ or safetensors, with its tokens as JSON.

docs/attention_files.md specifies it. Nothing in it can run: arrays are read as plain numbers, and what a header claims
is compared with the bytes that follow before anything is allocated.
"""

from __future__ import annotations

import json
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from io import BytesIO
from math import prod
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.lib import format as npy

from transformer.disk.plain_files import open_plain
from transformer.disk.tensor_files import TensorFile
from transformer.disk.whole_files import not_whole
from transformer.errors import CheckpointError, MessageError
from transformer.families.memory import check_memory
from transformer.guests.given_weights import masks_by_layer, weights_by_layer
from transformer.text.listed_tokens import sequence_of_pieces
from transformer.text.tokens import TokenSequence

FORMAT = "glassformer-attention-1"
NOTES = "glassformer"  # the array (NPZ) or the metadata entry (safetensors) with the JSON
SUFFIXES = (".npz", ".safetensors")
MAPS = tuple(f"attention{suffix}" for suffix in SUFFIXES)  # names of such files in an uploaded folder
MAX_TOKENS = 65_536
_ALLOWED = ".allowed"
_MAX_ARRAYS = 32
_MAX_NOTES = 8_000_000  # bytes
# The stack and kind of each array of weights, and whose tokens its queries and its keys are.
_PARTS = {
    "encoder": ("encoder", "self", "source", "source"),
    "decoder": ("decoder", "self", "target", "target"),
    "cross": ("decoder", "cross", "target", "source"),
}


class Maps(NamedTuple):
    """Attention of one kind: weights [layer][head, query, key] and masks [layer][query, key]."""

    stack: str
    kind: str
    weights: tuple[np.ndarray, ...]
    allowed: tuple[np.ndarray, ...]


@dataclass(frozen=True)
class AttentionFile:
    """The content of a file.

    Attributes:
        source: Tokens that the encoder read, if there is one.
        target: Tokens that the decoder read, if there is one.
        model: What the file says that the model is called; may be empty.
        maps: Attention of each kind that the file has.
    """

    source: TokenSequence | None
    target: TokenSequence | None
    model: str
    maps: tuple[Maps, ...]

    @property
    def sequences(self) -> tuple[TokenSequence, ...]:
        """The tokens of the encoder and of the decoder, those that there are."""
        return tuple(sequence for sequence in (self.source, self.target) if sequence is not None)

    @property
    def n_bytes(self) -> int:
        """Memory of the weights and masks."""
        return sum(array.nbytes for maps in self.maps for array in (*maps.weights, *maps.allowed))


def attention_file_of(path: Path) -> Path | None:
    """Return the attention file that ``path`` names, or the only one in an uploaded folder."""
    path = Path(path)
    if path.suffix.lower() in SUFFIXES and path.is_file():
        return path
    found = [path / name for name in MAPS if (path / name).is_file()]
    return found[0] if len(found) == 1 and not (path / "config.json").exists() else None


def read_attention_file(file: Path, *, most_numbers: int | None = None) -> AttentionFile:
    """Read a file of attention maps.

    Args:
        file: The file.
        most_numbers: How many numbers it may unpack to; by default as many as fit into the free memory.

    Raises:
        CheckpointError: If it is broken, too large for the memory, or does not fit ``docs/attention_files.md``; the
            message states both shapes or values.
    """
    try:
        read = _read_npz if file.suffix.lower() == ".npz" else _read_safetensors
        arrays = read(file, most_numbers)
        notes = _notes(arrays.pop(NOTES, None))
        return _content(arrays, notes)
    except CheckpointError:
        raise
    except (OSError, ValueError, RecursionError) as error:
        raise CheckpointError("{file}: {problem}", file=file, problem=error) from error


def _notes(text: Any) -> dict[str, Any]:
    try:
        notes = json.loads(str(text)) if text is not None else {}
    except ValueError as error:
        raise MessageError("{path} is not valid JSON: {problem}", path=NOTES, problem=error) from error
    found = notes.get("format") if isinstance(notes, dict) else None
    if found != FORMAT:
        raise MessageError(
            "its {name} says format {found}; a file of attention maps says {expected}",
            name=NOTES,
            found=repr(found)[:80],
            expected=repr(FORMAT),
        )
    return notes


def _content(arrays: Mapping[str, np.ndarray], notes: Mapping[str, Any]) -> AttentionFile:
    if unknown := [name for name in arrays if name.removesuffix(_ALLOWED) not in _PARTS]:
        raise MessageError(
            "it has an unknown array {name}; there may be {known}, each with a mask such as {mask}",
            name=repr(unknown[0][:80]),
            known=", ".join(_PARTS),
            mask=f"decoder{_ALLOWED}",
        )
    tokens = {name: _tokens(notes, name) for name in ("source", "target")}
    parts = [name for name in _PARTS if name in arrays]
    sides = {side for name in parts for side in _PARTS[name][2:]}
    needed = list(_PARTS) if len(sides) == 2 else parts
    if not parts or parts != needed or sides != {name for name, given in tokens.items() if given is not None}:
        raise MessageError(
            "it has the arrays {arrays} and tokens for {tokens}; a file holds encoder with source, decoder with "
            "target, or all three arrays with both",
            arrays=", ".join(parts) or "–",
            tokens=", ".join(name for name, given in tokens.items() if given is not None) or "–",
        )
    found = tuple(_maps(name, arrays, tokens) for name in parts)
    counts = {maps.stack: len(maps.weights[0]) for maps in found}
    for maps in found:
        if any(len(layer) != counts[maps.stack] for layer in maps.weights):
            raise MessageError("all layers of the {stack} must have the same number of heads", stack=maps.stack)
    if len(found) == 3 and len(found[1].weights) != len(found[2].weights):
        shapes = [arrays[name].shape for name in ("decoder", "cross")]
        raise MessageError("decoder has shape {one} but cross has {other}; both need one map per layer",
                           one=shapes[0], other=shapes[1])  # fmt: skip
    return AttentionFile(tokens["source"], tokens["target"], str(notes.get("model") or "")[:200], found)


def _tokens(notes: Mapping[str, Any], name: str) -> TokenSequence | None:
    listed = notes.get(name)
    if listed is None:
        return None
    if not isinstance(listed, list) or not 0 < len(listed) <= MAX_TOKENS:
        raise MessageError("{name} must be a list of 1 to {most} texts", name=name, most=f"{MAX_TOKENS:,}")
    return sequence_of_pieces(listed, name)


def _maps(name: str, arrays: Mapping[str, np.ndarray], tokens: Mapping[str, TokenSequence | None]) -> Maps:
    stack, kind, query, key = _PARTS[name]
    queries, keys = (len(tokens[side] or ()) for side in (query, key))
    try:
        weights = weights_by_layer(arrays[name], queries, keys, cross=kind == "cross")
        allowed = masks_by_layer(arrays.get(name + _ALLOWED), weights)
    except MessageError as error:
        raise MessageError("{where}: {problem}", where=name, problem=error) from error
    return Maps(stack, kind, tuple(weights), tuple(allowed))


def _read_safetensors(file: Path, most: int | None) -> dict[str, Any]:
    with TensorFile(file) as stored:
        found: dict[str, Any] = {}
        if NOTES in stored.metadata:
            found[NOTES] = stored.metadata[NOTES]
        _check_size(file, {name: tensor.shape for name, tensor in stored.tensors.items()}, most)
        return found | {name: stored.read(name).float().numpy() for name in stored.tensors}


def _read_npz(file: Path, most: int | None) -> dict[str, Any]:
    try:
        with open_plain(file) as handle, zipfile.ZipFile(handle) as archive:
            members = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
            headers = {name: _header(archive, info) for name, info in members.items()}
            _check_size(file, {name: shape for name, (shape, *_) in headers.items()}, most)
            return {name: _array(archive, info, *headers[name]) for name, info in members.items()}
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        raise not_whole(file, error) from error


def _check_size(file: Path, shapes: Mapping[str, tuple[int, ...]], most: int | None) -> None:
    if len(shapes) > _MAX_ARRAYS:
        raise MessageError("it has {count} arrays; at most {most} are read", count=len(shapes), most=_MAX_ARRAYS)
    count = sum(prod(shape) for shape in shapes.values())
    if most is not None and count > most:
        raise MessageError(
            "it unpacks to {count} numbers; at most {most} are accepted", count=f"{count:,}", most=f"{most:,}"
        )
    check_memory(file, 8 * count)  # memory for the arrays as stored, and again as float32


def _header(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> tuple[tuple[int, ...], bool, np.dtype]:
    """Return shape, order and type of an array, whose claimed size must match the archive's entry."""
    with archive.open(info) as stream:
        start = BytesIO(stream.read(12_000))  # NumPy reads headers of up to 10,000 bytes
    version = npy.read_magic(start)
    read = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}.get(version)
    if read is None:
        raise MessageError("it has an unexpected array {name}", name=repr(info.filename[:80]))
    shape, fortran, dtype = read(start)
    plain = dtype.kind in "fbiu" or (dtype.kind == "U" and dtype.itemsize <= 4 * _MAX_NOTES and not shape)
    if not plain or dtype.hasobject or start.tell() + prod(shape) * dtype.itemsize != info.file_size:
        raise MessageError("it has an unexpected array {name}", name=repr(info.filename[:80]))
    return shape, fortran, dtype


def _array(
    archive: zipfile.ZipFile, info: zipfile.ZipInfo, shape: tuple[int, ...], fortran: bool, dtype: np.dtype
) -> Any:
    with archive.open(info) as stream:
        content = stream.read(info.file_size)
    size = prod(shape) * dtype.itemsize
    if len(content) != info.file_size:
        raise MessageError("it ends too early")
    values = np.frombuffer(content, dtype, offset=len(content) - size)
    if dtype.kind == "U":
        return str(values[0])
    return values.reshape(shape, order="F" if fortran else "C")
