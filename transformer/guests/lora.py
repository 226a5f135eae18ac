"""LoRA adapters of PEFT, merged into the weights of their base: W + (α / r) · B A (Hu et al. 2022)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import sqrt
from pathlib import Path

from torch import Tensor

from transformer.disk.tensor_files import TensorFile, check_type
from transformer.errors import CheckpointError
from transformer.guests.folder import read_json

CONFIG, WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
_IN_FRONT = "base_model.model."
_PARTS = (".lora_A.weight", ".lora_B.weight")
# Settings under which an adapter is more than W + (α / r) · B A, and their values where it is not.
_PLAIN = {
    "peft_type": "LORA",
    "bias": "none",
    "use_dora": False,
    "modules_to_save": None,
    "rank_pattern": {},
    "alpha_pattern": {},
    "lora_bias": False,
    "layer_replication": None,
    "trainable_token_indices": None,
}


@dataclass(frozen=True, eq=False)
class Change:
    """What is added to one matrix of the base, as two factors, which take less memory than their product.

    Attributes:
        down: The matrix A, [rank, column].
        up: The matrix B, [row, rank].
        scale: The factor α / r.
        transposed: Whether the base stores the transpose of W (GPT-2).
    """

    down: Tensor
    up: Tensor
    scale: float
    transposed: bool

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the matrix that is changed."""
        shape = (len(self.up), self.down.shape[1])
        return shape[::-1] if self.transposed else shape

    def added_to(self, tensor: Tensor) -> Tensor:
        """Return the matrix of the base with this change; call ``check_all_fit`` first."""
        change = self.scale * (self.up @ self.down)
        return tensor + (change.T if self.transposed else change)


@dataclass(frozen=True)
class Adapter:
    """An adapter in a folder.

    Attributes:
        folder: The folder.
        base: Path or name of the base checkpoint.
        changes: What is added to each tensor of the base, by its name there.
    """

    folder: Path
    base: str
    changes: dict[str, Change]

    @property
    def files(self) -> tuple[Path, ...]:
        """The files that determine what it changes."""
        return (self.folder / CONFIG, self.folder / WEIGHTS)


def is_adapter(folder: Path) -> bool:
    """Return whether a folder holds an adapter."""
    return (Path(folder) / CONFIG).is_file()


def base_of(folder: Path) -> str:
    """Return the path or name of the base model that an adapter names.

    Raises:
        CheckpointError: If it names none.
    """
    base = read_json(Path(folder) / CONFIG).get("base_model_name_or_path")
    if not isinstance(base, str) or not base.strip():
        raise CheckpointError(f"{folder / CONFIG} names no base model")
    beside = Path(folder) / base  # a path may be relative to the adapter
    return str(beside) if beside.is_dir() else base


def read_adapter(folder: Path) -> Adapter:
    """Read an adapter.

    Raises:
        CheckpointError: If it is not plain LoRA, or its files are broken.
    """
    fields = read_json(Path(folder) / CONFIG)
    for name, plain in _PLAIN.items():
        if fields.get(name, plain) not in (plain, None):
            raise CheckpointError(
                f"{folder / CONFIG} says {name} {repr(fields[name])[:80]}; only plain LoRA can be merged, with "
                f"{name} {plain!r}"
            )
    rank, alpha = fields.get("r"), fields.get("lora_alpha")
    if not (type(rank) is int and rank > 0 and isinstance(alpha, int | float) and abs(alpha) < 1e6):
        raise CheckpointError(f"{folder / CONFIG} says r {repr(rank)[:80]} and lora_alpha {repr(alpha)[:80]}")
    changes = {}
    file = Path(folder) / WEIGHTS
    with TensorFile(file) as stored:
        modules = {name.removesuffix(part) for name in stored.tensors for part in _PARTS if name.endswith(part)}
        known = {module + part for module in modules for part in _PARTS}
        if strange := sorted(known ^ stored.tensors.keys()):
            raise CheckpointError(f"{strange[0][:200]} in {file} is not one of a pair of LoRA matrices")
        for module in sorted(modules):
            for part in _PARTS:
                check_type(file, module + part, stored.tensors[module + part].type)
            down, up = (stored.read(module + part).float() for part in _PARTS)
            if down.ndim != 2 or up.ndim != 2 or not up.shape[1] == down.shape[0] == rank:
                raise CheckpointError(
                    f"{file}: {module[:200]} has the shapes {tuple(down.shape)} and {tuple(up.shape)}, which do not "
                    f"fit rank {rank}"
                )
            scale = alpha / (sqrt(rank) if fields.get("use_rslora") else rank)
            change = Change(down, up, scale, transposed=bool(fields.get("fan_in_fan_out")))
            changes[f"{module.removeprefix(_IN_FRONT)}.weight"] = change
    return Adapter(Path(folder), base_of(folder), changes)


def check_all_fit(changes: Mapping[str, Change], shapes: Mapping[str, tuple[int, ...]]) -> None:
    """Check that the base has every tensor that an adapter changes, in its shape, before any is computed.

    Args:
        changes: The changes of an adapter.
        shapes: The shapes of the base's tensors, by the same names.

    Raises:
        CheckpointError: If it lacks one, or has another shape.
    """
    for name, change in sorted(changes.items()):
        if name not in shapes:
            raise CheckpointError(f"the adapter changes {name[:200]}, which the base does not have")
        if change.shape != tuple(shapes[name]):
            raise CheckpointError(
                f"the adapter changes {name[:200]} by {change.shape}, but the base has {tuple(shapes[name])}"
            )
