"""Snapshots: the model at earlier steps of its training, small enough to include several of them.

A checkpoint directory may contain ``snapshots/step-000300.safetensors`` and so on. All share the checkpoint's config
and tokenizer. Every matrix is stored in 8 bits with one scale per row (absmax quantisation, as in "LLM.int8()",
Dettmers et al. 2022, §2.1), every vector (biases, γ, β) in half precision; a tied matrix is stored once.

The snapshots of a checkpoint of Hugging Face's Trainer are the earlier checkpoints of the same training run
(``transformer.files.trainer_folder``).
"""

import re
from dataclasses import replace
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor

from transformer.config import ModelConfig
from transformer.disk.tensor_files import TensorFile
from transformer.disk.whole_files import atomic_path
from transformer.errors import CheckpointError
from transformer.files.checkpoints import Checkpoint, fill_model, load, own_parameters
from transformer.files.trainer_folder import trainer_checkpoints
from transformer.models import Model

FOLDER = "snapshots"
LARGEST = 127  # largest value of a signed 8-bit number whose range is symmetric around 0
_SCALE = ".scale"  # suffix of the name of a matrix's scales
_FILE = re.compile(r"step-(\d{6,})\.safetensors")


def is_snapshot(name: str) -> bool:
    """Return whether a file has the name of a snapshot."""
    return bool(_FILE.fullmatch(name))


def snapshot_file(step: int) -> str:
    """Return the path of a snapshot in a checkpoint directory: ``snapshots/step-000300.safetensors``."""
    return f"{FOLDER}/step-{step:06d}.safetensors"


def snapshot_steps(path: str | Path) -> tuple[int, ...]:
    """Return the steps of the snapshots of a checkpoint, in order; empty if there are none."""
    found = (_FILE.fullmatch(file.name) for file in (Path(path) / FOLDER).glob("step-*.safetensors"))
    return tuple(sorted({*(int(match[1]) for match in found if match), *trainer_checkpoints(Path(path))}))


def snapshot_path(path: Path, step: int) -> Path:
    """Return the file of a snapshot, or the folder of an earlier checkpoint of the same training run."""
    file = path / snapshot_file(step)
    return file if file.is_file() else trainer_checkpoints(path).get(step, file)


def snapshot(checkpoint: Checkpoint, step: int) -> Checkpoint:
    """Return the same checkpoint with its weights at ``step``, for use like any other.

    Raises:
        CheckpointError: If there is no snapshot of that step, or the file is broken or does not fit.
    """
    if step not in (steps := snapshot_steps(checkpoint.path)):
        listed = ", ".join(map(str, steps))
        problem = f"it has snapshots of steps {listed}" if steps else "it has no snapshots"
        raise CheckpointError(f"{checkpoint.path} has no snapshot of step {step}; {problem}")
    if (folder := snapshot_path(checkpoint.path, step)).is_dir():
        return _earlier_checkpoint(checkpoint, folder)
    file = snapshot_file(step)
    model = load_snapshot(checkpoint.path / file, checkpoint.config, step=step)
    return replace(checkpoint, model=model.to(checkpoint.model.device), weights=file)


def _earlier_checkpoint(checkpoint: Checkpoint, folder: Path) -> Checkpoint:
    """Return the earlier checkpoint in ``folder`` with the tokenizer and the prompt of ``checkpoint``.

    Raises:
        CheckpointError: If it cannot be opened, or belongs to a model with another configuration.
    """
    found = load(folder, device=checkpoint.model.device)
    if found.config != checkpoint.config:
        raise CheckpointError(
            f"{folder.name} is a model with another configuration than {checkpoint.name}; it is not an "
            "earlier step of it"
        )
    return replace(checkpoint, path=folder, model=found.model, unread=found.unread)


def quantise(matrix: Tensor) -> tuple[Tensor, Tensor]:
    """Quantise a matrix [row, column] to int8 with one half-precision scale per row, [row].

    s_i = max_j |w_ij| / 127, rounded up to a half-precision number; q_ij = round(w_ij / s_i), −127…127. The error of
    w_ij ≈ q_ij · s_i is at most s_i / 2, that is 1/254 of the largest weight of its row.
    """
    matrix = matrix.detach().to("cpu", torch.float32)
    wanted = matrix.abs().amax(dim=1) / LARGEST
    scale = wanted.half()
    too_small = scale.float() < wanted  # with a scale rounded down, the largest weight of the row would not fit
    # The next half-precision number.
    scale = torch.where(too_small, (scale.view(torch.int16) + 1).view(torch.float16), scale)
    divisor = scale.float()[:, None]
    numbers = torch.where(divisor > 0, matrix / divisor, 0.0).round()
    return numbers.to(torch.int8), scale


def write_snapshot(path: str | Path, model: Model, step: int) -> None:
    """Write ``model`` as one safetensors file with ``quantise``, and the step in its metadata.

    The file is written completely or not at all.

    Raises:
        ValueError: If weights are not finite or too large for half precision.
    """
    tensors: dict[str, Tensor] = {}
    for name, parameter in own_parameters(model).items():
        if not torch.isfinite(parameter).all():
            raise ValueError(f"no snapshot of step {step}: numbers are not finite in {name}")
        if parameter.ndim == 2:
            tensors[name], tensors[name + _SCALE] = quantise(parameter)
        else:
            tensors[name] = parameter.detach().to("cpu", torch.float16).contiguous()
    if broken := [name for name, tensor in tensors.items() if not torch.isfinite(tensor).all()]:
        raise ValueError(f"no snapshot of step {step}: {broken[0]} is too large for half precision (at most 65,504)")
    with atomic_path(Path(path)) as temporary:
        save_file(tensors, str(temporary), metadata={"step": str(step)})


def load_snapshot(path: str | Path, config: ModelConfig, *, step: int | None = None) -> Model:
    """Load what ``write_snapshot`` wrote as a model of ``config``, float32, in ``eval()`` mode.

    Weights of matrices differ from the original ones by at most scale / 2 (see ``quantise``), vectors by the rounding
    of half precision.

    Args:
        path: The file.
        config: The configuration.
        step: The step that its metadata must name, if given.

    Raises:
        CheckpointError: If the file is broken, does not fit the config (before anything is allocated for the weights),
            or holds numbers that are not finite.
    """
    path = Path(path)
    if not path.is_file():
        raise CheckpointError(f"there is no snapshot {path}")
    with TensorFile(path) as file:
        _check_step(path, file.metadata.get("step"), step)
        shapes = {name: tensor.shape for name, tensor in file.tensors.items()}
        _check_types(path, shapes, {name: tensor.type for name, tensor in file.tensors.items()})
        weights = {name: shape for name, shape in shapes.items() if not name.endswith(_SCALE)}

        def read(name: str) -> Tensor:
            values = file.read(name).float()
            return values * file.read(name + _SCALE).float()[:, None] if values.ndim == 2 else values

        return fill_model(config, path, weights, read=read).eval()


def _check_step(path: Path, stored: str | None, step: int | None) -> None:
    if stored is None or not stored.isdecimal():
        raise CheckpointError(
            f"{path} does not say of which step it is (metadata step: {stored!r}): it is not a snapshot"
        )
    if step is not None and int(stored) != step:
        raise CheckpointError(f"{path} is a snapshot of step {stored}, not of step {step}; was it renamed?")


def _check_types(path: Path, shapes: dict[str, tuple], types: dict[str, str]) -> None:
    """Check that matrices have 8 bits and one scale per row, and everything else half precision."""
    for name, shape in shapes.items():
        wanted = "I8" if len(shape) == 2 else "F16"
        if types[name] != wanted:
            raise CheckpointError(
                f"{path}: {name} {shape} is stored as {types[name]}, but a snapshot holds it as {wanted}; write "
                "it with transformer.files.snapshots.write_snapshot"
            )
        if len(shape) == 2 and shapes.get(name + _SCALE) != shape[:1]:
            raise CheckpointError(
                f"{path}: {name} {shape} needs {shape[0]} scales, one per row; it has {shapes.get(name + _SCALE)}"
            )
        if name.endswith(_SCALE) and len(shapes.get(name.removesuffix(_SCALE), ())) != 2:
            raise CheckpointError(f"{path} has {name} but no matrix that it belongs to")
