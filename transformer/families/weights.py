"""Third-party weights under our names: mapped, checked before allocation, assigned without a copy."""

import json
import os
import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from math import isfinite
from pathlib import Path

import torch
from torch import Tensor, nn

from transformer.disk.plain_files import read_plain_text
from transformer.disk.tensor_files import HALVES, StoredTensor, TensorFile, check_type
from transformer.errors import CheckpointError
from transformer.families.lora import Change, add_change, check_all_fit
from transformer.models import Model
from transformer.variants.half_precision import can_be_half, keep_half

WEIGHTS, INDEX = "model.safetensors", "model.safetensors.index.json"


@dataclass(frozen=True)
class Stored:
    """Where one of our tensors is in a file: the first existing one of ``names``, changed by ``view``."""

    names: tuple[str, ...]
    view: Callable[[Tensor], Tensor] | None = None


Table = dict[str, Stored]  # our name → where it is stored


def stored(*names: str, view: Callable[[Tensor], Tensor] | None = None) -> Stored:
    """Return the location of a tensor that is stored under the first existing name of ``names``."""
    return Stored(names, view)


def transposed(tensor: Tensor) -> Tensor:
    """Return the transpose of a matrix."""
    return tensor.T


def linear(ours: str, *theirs: str) -> Table:
    """Map the weight and bias of a linear layer or a norm; both have these names."""
    return {f"{ours}.{part}": Stored(tuple(f"{name}.{part}" for name in theirs)) for part in ("weight", "bias")}


class StoredWeights:
    """The tensors of a folder, by names without the prefixes that vary between files.

    ``LayerNorm.gamma`` and ``LayerNorm.beta`` are old names of ``weight`` and ``bias``. Tensors are read on demand.

    Args:
        folder: The checkpoint folder.
        prefixes: Prefixes that are stripped, repeatedly.
        stack: Closes the files.
        changes: What is added to some tensors, by their stored names (``transformer.families.lora``).
    """

    def __init__(
        self, folder: Path, prefixes: Iterable[str], stack: ExitStack, changes: Mapping[str, Change] | None = None
    ) -> None:
        self.folder, self.used = folder, set()
        prefixes = tuple(prefixes)
        self._changes = {plain_name(name, prefixes): change for name, change in (changes or {}).items()}
        self._where: dict[str, tuple[Path, str]] = {}
        self._files: dict[Path, TensorFile] = {}
        for file in weight_files(folder):
            self._files[file] = stack.enter_context(TensorFile(file))
            for name in self._files[file].tensors:
                plain = plain_name(name, prefixes)
                if plain in self._where:
                    raise CheckpointError(f"{folder} holds {plain} twice: as {self._where[plain][1]} and as {name}")
                self._where[plain] = (file, name)
        check_all_fit(self._changes, {name: self.shape(name) for name in self._where})

    def __contains__(self, name: str) -> bool:
        return name in self._where

    def shape(self, name: str) -> tuple[int, ...]:
        """Return the shape of a tensor."""
        return self._stored(name).shape

    def check_type(self, name: str) -> None:
        """Raise ``CheckpointError`` if a tensor is not floating-point."""
        check_type(self._where[name][0], name, self._stored(name).type)

    def read(self, name: str, *, half: bool = False) -> Tensor:
        """Return a tensor in float32, or as it is stored in half precision, a new array."""
        file, full = self._where[name]
        self.used.add(name)
        tensor = self._files[file].read(full)
        return tensor if half else add_change(name, tensor.to(torch.float32), self._changes)

    def is_half(self, name: str) -> bool:
        """Whether a tensor is stored in half precision, and no adapter changes it."""
        return self._stored(name).type in HALVES and name not in self._changes

    def unread(self) -> list[str]:
        """Return the names of tensors that were not read."""
        return [name for name in self._where if name not in self.used]

    def name_in_file(self, name: str) -> str:
        """Return the name of a tensor in its file, with the prefixes that vary between files."""
        return name

    @property
    def n_numbers(self) -> int:
        """Number of weights in all files."""
        return sum(torch.Size(self.shape(name)).numel() for name in self._where)

    @property
    def n_half(self) -> int:
        """Number of weights that can stay in half precision."""
        return sum(torch.Size(self.shape(name)).numel() for name in self._where if self.is_half(name))

    def _stored(self, name: str) -> StoredTensor:
        file, full = self._where[name]
        return self._files[file].tensors[full]


def weight_files(folder: Path) -> list[Path]:
    """Return the safetensors files of a folder: one, or the shards that its index names."""
    if (folder / WEIGHTS).is_file():
        return [folder / WEIGHTS]
    index = folder / INDEX
    if not index.is_file():
        raise CheckpointError(f"{folder} lacks {WEIGHTS}; a checkpoint needs config.json, {WEIGHTS} and tokenizer.json")
    try:
        shards = json.loads(read_plain_text(index))["weight_map"].values()
        names = sorted(set(shards))
    except (ValueError, RecursionError, KeyError, TypeError, AttributeError) as error:
        raise CheckpointError(f"{index} is not an index of shards: {error!r}") from error
    for name in names:
        if not isinstance(name, str) or Path(name).name != name or not name.endswith(".safetensors"):
            raise CheckpointError(f"{index} names the shard {repr(name)[:200]}, which lies elsewhere")
        if not os.path.isfile(folder / name):  # ``is_file`` would raise for names longer than the file system allows
            raise CheckpointError(f"{index} names the shard {name[:200]}, which is missing")
    return [folder / name for name in names]


def assign(model: Model, table: Table, weights: StoredWeights, *, half: bool = False) -> dict[str, str]:
    """Assign its tensors to the model and return the stored name of each.

    All names and shapes are compared before the first number is read. ``half``: matrices that the file holds in half
    precision stay so.
    """
    wanted = dict(model.named_parameters(remove_duplicate=True))
    chosen = {ours: _choose(ours, table[ours], weights) for ours in wanted}
    problems = []
    for ours, parameter in wanted.items():
        theirs = chosen[ours]
        weights.check_type(theirs)
        view = table[ours].view
        found = torch.empty(weights.shape(theirs), device="meta")
        try:
            shape = tuple(found.shape) if view is None else tuple(view(found).shape)
        except (RuntimeError, IndexError, ValueError):
            shape = tuple(found.shape)
        if shape != tuple(parameter.shape):
            problems.append((theirs, tuple(found.shape), tuple(parameter.shape)))
    if problems:
        name, found, expected = problems[0]
        raise CheckpointError(
            f"{weights.folder} does not fit its config.json: {name} is {found} in the file but {expected} by the config"
        )
    _refuse_more_layers(weights, set(chosen.values()))
    places = modules_of_parameters(model)
    users: dict[str, list[str]] = {}
    for ours, theirs in chosen.items():
        users.setdefault(theirs, []).append(ours)
    for theirs, names in users.items():  # one tensor at a time; only it is held twice
        kept = half and weights.is_half(theirs)
        tensor = _finite(theirs, weights, half=kept)
        for ours in names:
            modules = places[wanted[ours]]
            matrix = kept and all(name == "weight" and can_be_half(module) for module, name in modules)
            value = tensor if matrix else tensor.float()
            view = table[ours].view  # of a matrix, it only moves numbers
            new = nn.Parameter(value if view is None else view(value), requires_grad=False)
            for module, name in modules:
                setattr(module, name, new)
                if matrix:
                    keep_half(module)
    return chosen


def _finite(name: str, weights: StoredWeights, *, half: bool) -> Tensor:
    tensor = weights.read(name, half=half)
    if not all_finite(tensor):
        raise CheckpointError(f"{weights.folder} holds numbers that are not finite (NaN or infinite) in {name}")
    return tensor


def all_finite(tensor: Tensor) -> bool:
    """Whether no number is NaN or infinite."""
    # A single non-finite number makes the sum non-finite. A sum that merely overflows proves nothing.
    return isfinite(tensor.detach().sum(dtype=torch.float32)) or bool(torch.isfinite(tensor).all())


def _choose(ours: str, row: Stored, weights: StoredWeights) -> str:
    for name in row.names:
        if name in weights:
            return name
    raise CheckpointError(f"{weights.folder} lacks the weights {row.names[0]}, which config.json asks for")


def _refuse_more_layers(weights: StoredWeights, used: set[str]) -> None:
    """Raise if an unused tensor's name differs from a used one's only in numbers: there are more layers."""
    patterns = {re.sub(r"\d+", "#", name) for name in used if re.search(r"\d", name)}
    for name in weights.unread():
        if name not in used and re.search(r"\d", name) and re.sub(r"\d+", "#", name) in patterns:
            raise CheckpointError(
                f"{weights.folder} does not fit its config.json: it holds {name}, which belongs to a layer that "
                "config.json does not have"
            )


def modules_of_parameters(model: nn.Module) -> dict[nn.Parameter, list[tuple[nn.Module, str]]]:
    """Return where each parameter is used: a tied matrix is used in several modules."""
    places: dict[nn.Parameter, list[tuple[nn.Module, str]]] = {}
    for module in model.modules():
        for name, parameter in module.named_parameters(recurse=False):
            places.setdefault(parameter, []).append((module, name))
    return places


def plain_name(name: str, prefixes: tuple[str, ...]) -> str:
    """Return a stored name without the prefixes and old names that vary between files."""
    while True:
        prefix = next((prefix for prefix in prefixes if name.startswith(prefix)), None)
        if prefix is None:
            break
        name = name.removeprefix(prefix)
    for old, new in ((".gamma", ".weight"), (".beta", ".bias")):
        if name.endswith(old):
            name = name.removesuffix(old) + new
    return name
