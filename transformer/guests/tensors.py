"""The tensors of a guest, read into memory: truncating a mapped file would end the server."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from math import isfinite, prod
from pathlib import Path
from typing import TypeAlias

import torch
from torch import Tensor

from transformer.disk.gguf_file import GgufFile, is_gguf
from transformer.disk.tensor_files import FLOATS, HALVES, StoredTensor, TensorFile, check_type
from transformer.errors import CheckpointError
from transformer.guests.folder import weight_files
from transformer.guests.gguf import GgufTensors
from transformer.guests.lora import Change, check_all_fit

# Buffers that older checkpoints hold and a network makes by itself: positions 0, 1, 2 … and causal masks.
_MADE_ANEW = re.compile(r"position_ids$|\.(attn|attention)\.(masked_)?bias$")

_TEXT = "language_model."  # in the names of the text model's tensors in a larger model


class FolderTensors:
    """The tensors of the safetensors files of a folder, with what an adapter adds to them.

    Args:
        folder: The folder.
        changes: What is added to some of them, by their names in the files.
        stack: Closes the files.
        only_text: Whether only those of the language model in a larger model are read.

    Attributes:
        shapes: Shape of each tensor, by the name that ``transformers`` knows.
        halves: Names of the tensors that are stored in half precision and can stay so.
    """

    def __init__(self, folder: Path, changes: Mapping[str, Change], stack: ExitStack, *, only_text: bool) -> None:
        self._names: dict[str, str] = {}
        self._files: dict[str, TensorFile] = {}
        stored: dict[str, StoredTensor] = {}
        for file in weight_files(folder):
            opened = stack.enter_context(TensorFile(file))
            for full, tensor in opened.tensors.items():
                if _is_made_anew(full, tensor) or (only_text and not _is_of_text(full)):
                    continue
                name = full.replace(_TEXT, "", 1) if only_text else full
                if name in stored:
                    raise CheckpointError(f"{folder} holds {name[:200]} twice")
                check_type(file, full, tensor.type)
                stored[name], self._names[name], self._files[name] = tensor, full, opened
        changes = {_stored_name(name, self._names.values()): change for name, change in changes.items()}
        self._changes = {name: changes[full] for name, full in self._names.items() if full in changes}
        self.shapes = {name: tensor.shape for name, tensor in stored.items()}
        self.halves = frozenset(name for name, tensor in stored.items() if tensor.type in HALVES) - self._changes.keys()
        check_all_fit(changes, {full: self.shapes[name] for name, full in self._names.items()})

    def read(self, name: str) -> Tensor:
        """Return a tensor in the type that it is stored in, or in float32 if an adapter changes it."""
        tensor = self._files[name].read(self._names[name])
        return self._changes[name].added_to(tensor.float()) if name in self._changes else tensor

    def name_in_file(self, name: str) -> str:
        """Return the name of a tensor in the file."""
        return self._names[name]


Tensors: TypeAlias = FolderTensors | GgufTensors


def _stored_name(name: str, stored: Collection[str]) -> str:
    """Return the stored name of a tensor that an adapter changes; either may lack the model's prefix."""
    if name in stored:
        return name
    inner = name.partition(".")[2]
    longer = [each for each in stored if each.partition(".")[2] == name]
    return inner if inner in stored else longer[0] if len(longer) == 1 else name


def _is_of_text(name: str) -> bool:
    return name.startswith((_TEXT, f"model.{_TEXT}", "lm_head."))


def _is_made_anew(name: str, tensor: StoredTensor) -> bool:
    """Return whether a tensor is a buffer that the network computes itself, not a bias of its attention."""
    if not _MADE_ANEW.search(name):
        return False
    return name.endswith("position_ids") or tensor.type not in FLOATS or len(tensor.shape) != 1


@contextmanager
def open_tensors(
    path: Path, fields: dict, changes: Mapping[str, Change], *, only_text: bool = False
) -> Iterator[Tensors]:
    """Open the tensors of a folder, or of a GGUF file whose fields are ``fields``.

    ``only_text``: only those of the language model in a model that also reads images.

    Raises:
        CheckpointError: If a file is broken, or an adapter does not fit.
    """
    if is_gguf(path):
        yield GgufTensors(GgufFile(path), fields)
        return
    with ExitStack() as stack:
        yield FolderTensors(path, changes, stack, only_text=only_text)


def check_layers_fit(folder: Path, names: Iterable[str], unread: Iterable[str], prefix: str) -> None:
    """Refuse an unread tensor whose name differs from a parameter's only in numbers.

    Args:
        folder: The folder, for the error.
        names: Names of the network's parameters.
        unread: Names of stored tensors that it does not have.
        prefix: The prefix that stored names may lack.

    Raises:
        CheckpointError: If a stored tensor belongs to a layer that the network does not have.
    """
    patterns = {_pattern(name) for name in names if re.search(r"\d", name)}
    for name in unread:
        if re.search(r"\d", name) and not patterns.isdisjoint(map(_pattern, (name, f"{prefix}.{name}"))):
            raise CheckpointError(
                f"{folder} does not fit its config.json: it holds {name[:200]}, which belongs to a layer that the "
                "config does not have"
            )


def _pattern(name: str) -> str:
    return re.sub(r"\d+", "#", name)


def count(shapes: Mapping[str, tuple[int, ...]], names: Iterable[str] | None = None) -> int:
    """Return how many numbers tensors have: all of them, or those of some names."""
    return sum(prod(shapes[name]) for name in (shapes if names is None else names))


def all_finite(tensor: Tensor) -> bool:
    """Return whether no number is NaN or infinite."""
    # A single non-finite number makes the sum non-finite. A sum that merely overflows proves nothing.
    return isfinite(tensor.detach().sum(dtype=torch.float32)) or bool(torch.isfinite(tensor).all())
