"""A checkpoint directory: ``config.json``, ``model.safetensors``, ``tokenizer.json``, ``README.md``."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from math import prod
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

from transformer.config import ModelConfig
from transformer.disk.gguf_file import is_gguf
from transformer.disk.tensor_files import TensorFile, check_type
from transformer.disk.whole_files import atomic_path, write_text
from transformer.errors import CheckpointError, text_of
from transformer.files.build import build_model
from transformer.files.layout import (
    CARD,
    CONFIG,
    GENERATION,
    SHORT_DIGITS,
    TOKENIZER,
    WEIGHTS,
    fingerprint,
    is_guest,
    own_config,
    random_fingerprint,
    shown_fingerprints,
    shown_name,
    with_adapter,
)
from transformer.files.model_card import card_of
from transformer.files.names import resolve
from transformer.files.once import once
from transformer.files.packaged_models import known_model
from transformer.guests.folder import fields_of, read_json, stored_files
from transformer.guests.framing import framing_of, padding_of
from transformer.guests.lora import Adapter, is_adapter, read_adapter
from transformer.guests.opening import open_guest, with_defaults
from transformer.models import Model
from transformer.pictures.patch_tokenizer import load_tokenizer
from transformer.text.guests.spelling import check_spelling
from transformer.text.guests.tokenizer import open_tokenizer
from transformer.text.prompt import Prompt
from transformer.text.special_ids import Framing, SpecialIds
from transformer.text.tokenizer import END_ID, FRAMINGS, PAD_ID, Tokenizer

SMALL = 2**24  # numbers that may be allocated whatever a config claims
PICKLES = (".pt", ".pth", ".bin", ".pkl", ".pickle", ".ckpt")


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """A trained model with everything that belongs to it, in ``eval()`` mode and shared: never change it.

    Attributes:
        weights: File within ``path`` that the model was read from (a snapshot has its own).
        frame: Ids around a text, if they differ from those of our own models.
        unread: Tensors of a guest's files that are not used.
        adapter: The LoRA adapter that is merged into the weights, if any.
        prompt: Meaning of a typed text, if it is not plain text (``transformer.files.chats``).
        seed: Seed of random weights that replace those of the file (``transformer.files.untrained``), if any.
    """

    path: Path
    model: Model
    tokenizer: Tokenizer
    card: str
    weights: str = WEIGHTS
    frame: Framing | None = None
    unread: tuple[str, ...] = ()
    prompt: Prompt | None = None
    adapter: Adapter | None = None
    seed: int | None = None

    @once
    def framing(self) -> Framing:
        """Ids before and after a text that this model reads or generates."""
        return (
            self.frame
            or self.tokenizer.framing
            or replace(
                FRAMINGS[self.config.kind],
                starts=self.config.task_prefixes,
                between=(END_ID,) if self.config.n_segments > 1 else (),
            )
        )

    @property
    def special(self) -> SpecialIds:
        """The ids that stand for no text."""
        return self.tokenizer.special

    @property
    def name(self) -> str:
        """Name for display: the name of known weights, or else of the directory, also where it is "." or ".."."""
        if self.adapter is None and (known := known_model(self.path)) is not None:
            return known.name
        return shown_name(Path(os.path.abspath(self.adapter.folder if self.adapter else self.path)).name)

    @once
    def config(self) -> ModelConfig:
        """Configuration of the model."""
        return self.model.config

    @once
    def fingerprint(self) -> str:
        """SHA-256 of weights, config and tokenizer, in hexadecimal: identifies exactly this checkpoint."""
        of_weights = fingerprint(self.path, weights=self.weights)
        if self.seed is not None:
            return random_fingerprint(of_weights, self.seed)
        return with_adapter(of_weights, self.adapter.files) if self.adapter else of_weights

    @property
    def short_fingerprint(self) -> str:
        """First 12 digits of the fingerprint, for display only."""
        return self.fingerprint[:SHORT_DIGITS]

    @property
    def is_guest(self) -> bool:
        """Whether it is a third-party model, which the code of ``transformers`` computes."""
        return self.config.is_guest


@torch.inference_mode(False)  # a model that is loaded inside inference mode could never be differentiated
def load(path: str | Path, *, device: str | torch.device = "cpu") -> Checkpoint:
    """Read a checkpoint directory; weights are float32 in memory, whatever the file holds.

    A directory in Hugging Face's layout, or a GGUF file, opens as a guest: the code of ``transformers`` computes
    (``transformer.guests``). So do checkpoints that other programs keep on this computer, by name
    (``transformer.files.names``). No more memory is allocated for the weights than their file justifies.

    Args:
        path: Directory, file or name.
        device: Where the model runs.

    Raises:
        CheckpointError: If a file is missing, broken, or does not fit the others; the message states both numbers.
    """
    path = resolve(path)
    if is_adapter(path):
        adapter = read_adapter(path)
        base = resolve(adapter.base)
        if not (base.is_dir() and is_guest(base)):
            raise CheckpointError(
                f"{path} changes the weights of {adapter.base[:200]}, which is not on this computer as a folder "
                "in Hugging Face's layout"
            )
        return _load_guest(base, device, adapter=adapter)
    if is_guest(path):
        return _load_guest(path, device)
    _check_files(path)
    try:
        config = own_config(path / CONFIG)
    except ValueError as error:
        raise CheckpointError(text_of(error)) from error
    tokenizer = load_tokenizer(config, path / TOKENIZER)
    if tokenizer.vocabulary_size != config.vocabulary_size:
        raise CheckpointError(
            f"{path}: the tokenizer has {tokenizer.vocabulary_size} entries but config.json says "
            f"vocabulary_size {config.vocabulary_size}; they must come from the same training run"
        )
    if config.pad_id != PAD_ID:
        raise CheckpointError(f"{path}: config.json says pad_id {config.pad_id} but the tokenizer pads with {PAD_ID}")
    model = load_weights(config, path / WEIGHTS).to(device).eval()
    return Checkpoint(path=path, model=model, tokenizer=tokenizer, card=card_of(path))


def _load_guest(path: Path, device: str | torch.device, *, adapter: Adapter | None = None) -> Checkpoint:
    if path.is_dir() and (pickles := _pickles(path)) and not any(path.glob("*.safetensors*")):
        raise pickle_refusal(f"{path} holds {pickles[0]},", pickles[0])
    fields = fields_of(path)
    generation = read_json(path / GENERATION) if (path / GENERATION).is_file() else {}
    opened = open_guest(path, fields, adapter.changes if adapter else None)
    model = opened.model.to(device)
    found: dict[str, Any] = {"path": path, "model": model, "card": card_of(path), "unread": opened.unread}
    found["adapter"] = replace(adapter, changes={}) if adapter else None
    if model.images is not None:
        return Checkpoint(**found, tokenizer=model.images)
    fields = fields if is_gguf(path) else with_defaults(fields)  # a GGUF file names all that it has
    tokenizer = open_tokenizer(path, config=fields, generation=generation)
    check_spelling(tokenizer, path)
    frame = framing_of(model.config, tokenizer, fields, generation)
    model.set_special_ids(pad=padding_of(model.config, tokenizer), separator=tokenizer.special.end)
    return Checkpoint(**found, tokenizer=tokenizer, frame=frame)


def load_weights(config: ModelConfig, file: Path) -> Model:
    """Return a model of ``config`` with the weights of a safetensors file; shapes are compared first."""
    with TensorFile(file) as weights:
        for name, tensor in weights.tensors.items():
            check_type(file, name, tensor.type)
        stored = {name: tensor.shape for name, tensor in weights.tensors.items()}
        return fill_model(config, file, stored, read=lambda name: weights.read(name).float())


def fill_model(
    config: ModelConfig, file: Path, stored: Mapping[str, tuple], *, read: Callable[[str], torch.Tensor]
) -> Model:
    """Return a model of ``config`` with the tensors that ``read`` returns by name.

    Args:
        config: The configuration.
        file: File named in errors.
        stored: Shapes of the tensors, which are compared first.
        read: Returns a tensor by name.

    Raises:
        CheckpointError: If shapes do not fit, or numbers are not finite.
    """
    _check_size(config, file, stored)
    model = build_model(config)
    parameters = own_parameters(model)
    _compare(file, {name: tuple(parameter.shape) for name, parameter in parameters.items()}, dict(stored))
    tensors = {name: read(name) for name in stored}
    if broken := [name for name, tensor in tensors.items() if not torch.isfinite(tensor).all()]:
        raise CheckpointError(f"{file} holds numbers that are not finite (NaN or infinite) in {', '.join(broken[:3])}")
    with torch.no_grad():
        for name, parameter in parameters.items():
            parameter.copy_(tensors[name])
    return model


def save(path: str | Path, model: Model, tokenizer: Tokenizer, *, card: str = "", half: bool = True) -> None:
    """Write a checkpoint directory; each file replaces its predecessor only when it is complete."""
    path = Path(path)
    save_weights(path / WEIGHTS, model, half=half)
    with atomic_path(path / TOKENIZER) as temporary:
        tokenizer.save(temporary)
    write_text(path / CONFIG, model.config.to_json())
    if card:
        write_text(path / CARD, card)


def save_weights(file: Path, model: Model, *, half: bool = True) -> None:
    """Write one safetensors file, in half precision by default; a tied matrix is written once.

    Raises:
        ValueError: If weights are not finite, also in half precision (its largest number is 65,504): ``load`` would
            refuse the file.
    """
    dtype = torch.float16 if half else torch.float32
    tensors = {name: tensor.detach().to("cpu", dtype).contiguous() for name, tensor in own_parameters(model).items()}
    if broken := [name for name, tensor in tensors.items() if not torch.isfinite(tensor).all()]:
        remedy = "; if they are only too large for half precision, save with half=False" if half else ""
        raise ValueError(f"not saved: numbers are not finite in {', '.join(broken[:3])}{remedy}")
    with atomic_path(file) as temporary:
        save_file(tensors, str(temporary))


def megabytes_on_disk(checkpoint: Checkpoint) -> float:
    """Return the size of the files with the weights, in 10⁶ bytes."""
    files = stored_files(checkpoint.path) if checkpoint.is_guest else [checkpoint.path / WEIGHTS]
    return sum(file.stat().st_size for file in files) / 1e6


def own_parameters(model: Model) -> dict[str, torch.nn.Parameter]:
    """Return every parameter once; ``named_parameters`` leaves out the second name of a tied matrix."""
    return dict(model.named_parameters(remove_duplicate=True))


def _check_files(path: Path) -> None:
    if not path.is_dir():
        raise CheckpointError(
            f"{path} is not a directory; a checkpoint is a directory with "
            f"{', '.join((CONFIG, WEIGHTS, TOKENIZER))}, or a GGUF file"
        )
    if not (path / WEIGHTS).is_file() and (pickles := _pickles(path)):
        raise pickle_refusal(f"{path} holds {pickles[0]},", pickles[0])
    if missing := [file for file in (CONFIG, WEIGHTS, TOKENIZER) if not (path / file).is_file()]:
        raise CheckpointError(
            f"{path} lacks {', '.join(missing)}; a checkpoint needs {CONFIG}, {WEIGHTS} and {TOKENIZER}"
        )


def _pickles(path: Path) -> list[str]:
    # Unlike ``iterdir``, ``glob`` is no error where names may not be listed: the next check says what is missing.
    return sorted(file.name for file in path.glob("*") if file.suffix in PICKLES)


def pickle_refusal(found: str, name: str) -> CheckpointError:
    """Return the error for the pickle ``name``, which was ``found``, with the code that converts it."""
    return CheckpointError(
        f"{found} a pickle, which may run any code when opened; convert it where you trust it: "
        f"safetensors.torch.save_file(torch.load({name!r}, weights_only=True), {WEIGHTS!r})"
    )


def _check_size(config: ModelConfig, file: Path, stored: Mapping[str, tuple]) -> None:
    """Refuse a config that needs far more numbers than its file holds, before anything is allocated.

    A small model may be built anyway, so that the tensor that does not fit can be named.
    """
    found, expected = sum(prod(shape) for shape in stored.values()), _n_numbers(config)
    if expected > 4 * found + SMALL:
        what = f"it holds {found} numbers but the config asks for {expected}"
        raise CheckpointError(f"{file} does not fit its config.json: {what}")


def _n_numbers(config: ModelConfig) -> int:
    """Estimate how many numbers a model has, by the widths and the number of its layers."""
    width, n_layers = config.d_model, config.n_encoder_layers + config.n_decoder_layers
    n_attentions = n_layers + (config.n_decoder_layers if config.has_encoder else 0)
    vocabulary = config.patch_size**2 if config.reads_images else config.vocabulary_size
    tables = (config.has_encoder + config.has_decoder) * (vocabulary + config.max_length)
    return width * (4 * width * n_attentions + 2 * config.d_ff * n_layers + tables)


def _compare(file: Path, expected: dict[str, tuple], stored: dict[str, tuple]) -> None:
    if problems := _differences(expected, stored):
        raise CheckpointError(f"{file} does not fit its config.json: {'; '.join(problems)}")


def _differences(expected: dict[str, tuple], stored: dict[str, tuple]) -> list[str]:
    lacking = [name for name in expected if name not in stored]
    problems = [f"it lacks {name} {expected[name]}" for name in lacking]
    unknown = [name for name in stored if name not in expected]
    problems += [f"it has an unknown {name} {stored[name]}" for name in unknown]
    problems += [
        f"{name} is {stored[name]} in the file but {expected[name]} by the config"
        for name in expected
        if name in stored and stored[name] != expected[name]
    ]
    return problems[:3] + ([f"and {len(problems) - 3} more"] if len(problems) > 3 else [])


def file_of_other_weights(checkpoint: Checkpoint, file: str, found: str) -> CheckpointError:
    """Return the error for a ``file`` that belongs to the weights with the fingerprint ``found``."""
    found, these = shown_fingerprints(str(found), checkpoint.fingerprint)
    return CheckpointError(
        f"{file} of {checkpoint.name} was made from other weights ({found}, but these are {these}), so it is not used."
    )
