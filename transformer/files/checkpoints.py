"""A checkpoint directory: ``config.json``, ``model.safetensors``, ``tokenizer.json``, ``README.md``."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import reduce
from math import prod
from pathlib import Path

import torch
from safetensors.torch import save_file

from transformer.config import ModelConfig, PictureConfig
from transformer.disk.tensor_files import TensorFile, check_type
from transformer.disk.whole_files import atomic_path, write_text
from transformer.errors import CheckpointError
from transformer.families.build import build_model, mask_padding
from transformer.families.foreign_folder import fields_of, open_model, read_json
from transformer.families.framing import framing_of, padding_of
from transformer.files.layout import (
    CARD,
    CONFIG,
    GENERATION,
    SHORT_DIGITS,
    TOKENIZER,
    WEIGHTS,
    fingerprint,
    is_foreign,
    own_config,
    shown_fingerprints,
    shown_name,
)
from transformer.files.model_card import card_of
from transformer.files.names import resolve
from transformer.files.once import once
from transformer.models import Model
from transformer.pictures.patch_tokenizer import load_tokenizer
from transformer.text.foreign.tokenizer import open_tokenizer
from transformer.text.message import Message
from transformer.text.prompt import Prompt
from transformer.text.special_ids import Framing, SpecialIds
from transformer.text.tokenizer import FRAMINGS, PAD_ID, Tokenizer

SMALL = 2**24  # numbers that may be allocated for whatever a config claims
_PICKLES = ("*.pt", "*.pth", "*.bin", "*.pkl", "*.ckpt")


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """A trained model with all that belongs to it. The model is in ``eval()`` mode and shared: never change it.

    ``weights``: the file inside of ``path`` that the model was read from (a snapshot has another than its checkpoint).
    ``frame``: what stands around a text, where it is not our own way. ``mapping``: of somebody else's checkpoint, our
    name of every tensor and theirs; ``unread``: their tensors that no part of ours is. ``prompt``: what a typed text
    means, if not the plain text (``transformer.files.chats``).
    """

    path: Path
    model: Model
    tokenizer: Tokenizer
    card: str
    weights: str = WEIGHTS
    frame: Framing | None = None
    mapping: Mapping[str, str] = field(default_factory=dict, repr=False)
    unread: tuple[str, ...] = ()
    prompt: Prompt | None = None

    @property
    def framing(self) -> Framing:
        """What stands before and after a text that this model reads or writes."""
        return (
            self.frame
            or self.tokenizer.framing
            or replace(FRAMINGS[self.config.kind], starts=self.config.task_prefixes)
        )

    @property
    def special(self) -> SpecialIds:
        """The ids that stand for no text."""
        return self.tokenizer.special

    @property
    def name(self) -> str:
        """The name of its directory, for the eye; that of "." and ".." as well."""
        return shown_name(Path(os.path.abspath(self.path)).name)

    @property
    def config(self) -> ModelConfig:
        return self.model.config

    @once
    def fingerprint(self) -> str:
        """The SHA-256 of weights, config and tokenizer, as 64 hexadecimal digits: names exactly this checkpoint."""
        return fingerprint(self.path, weights=self.weights)

    @property
    def short_fingerprint(self) -> str:
        """The first 12 digits of the fingerprint, for the eye only."""
        return self.fingerprint[:SHORT_DIGITS]

    @property
    def foreign(self) -> bool:
        """Whether it is somebody else's: opened by its family."""
        return bool(self.mapping)


def load(path: str | Path, *, device: str | torch.device = "cpu") -> Checkpoint:
    """Read a checkpoint directory; weights are float32 in memory, whatever the file holds.

    One in Hugging Face's layout opens as well, if its family is known (``transformer.families``); so does a GGUF file,
    and what other programs keep on this computer, by its name (``transformer.files.names``).

    Raises ``CheckpointError`` when a file is missing, broken, or does not fit the others, with both numbers;
    no more is allocated for the weights than their file bears out.
    """
    path = resolve(path)
    if is_foreign(path):
        return _load_foreign(path, device)
    _check_files(path)
    try:
        config = own_config(path / CONFIG)
    except ValueError as error:
        raise CheckpointError("{problem}", problem=error) from error
    tokenizer = load_tokenizer(config, path / TOKENIZER)
    if tokenizer.vocabulary_size != config.vocabulary_size:
        raise CheckpointError(
            "{where}: the tokenizer has {entries} entries but config.json says vocabulary_size {size}; they must come "
            "from the same training run",
            where=path,
            entries=tokenizer.vocabulary_size,
            size=config.vocabulary_size,
        )
    if config.pad_id != PAD_ID:
        raise CheckpointError(
            "{where}: config.json says pad_id {found} but the tokenizer pads with {expected}",
            where=path,
            found=config.pad_id,
            expected=PAD_ID,
        )
    model = load_weights(config, path / WEIGHTS).to(device).eval()
    return Checkpoint(path=path, model=model, tokenizer=tokenizer, card=card_of(path))


def _load_foreign(path: Path, device: str | torch.device) -> Checkpoint:
    if path.is_dir() and _pickles(path) and not any(path.glob("*.safetensors*")):
        raise _only_pickles(path)
    fields = fields_of(path)
    generation = read_json(path / GENERATION) if (path / GENERATION).is_file() else {}
    opened = open_model(path, fields)
    tokenizer = open_tokenizer(path, config=fields, generation=generation)
    mask_padding(opened.model, padding_of(opened.config, tokenizer))
    return Checkpoint(
        path=path,
        model=opened.model.to(device),
        tokenizer=tokenizer,
        card=card_of(path),
        frame=framing_of(opened.config, tokenizer, fields, generation),
        mapping=opened.mapping,
        unread=opened.unread,
    )


def load_weights(config: ModelConfig, file: Path) -> Model:
    """A model of ``config`` with the weights of a safetensors file; shapes are compared before anything is read."""
    with TensorFile(file) as weights:
        for name, tensor in weights.tensors.items():
            check_type(file, name, tensor.type)
        stored = {name: tensor.shape for name, tensor in weights.tensors.items()}
        return fill_model(config, file, stored, read=lambda name: weights.read(name).float())


def fill_model(
    config: ModelConfig, file: Path, stored: Mapping[str, tuple], *, read: Callable[[str], torch.Tensor]
) -> Model:
    """A model of ``config`` with the tensors that ``read`` gives by name; ``stored``: their shapes, compared first.

    Raises ``CheckpointError`` for shapes that do not fit and numbers that are not finite; ``file`` is what it names.
    """
    _check_size(config, file, stored)
    model = build_model(config)
    parameters = own_parameters(model)
    _compare(file, {name: tuple(parameter.shape) for name, parameter in parameters.items()}, dict(stored))
    tensors = {name: read(name) for name in stored}
    if broken := [name for name, tensor in tensors.items() if not torch.isfinite(tensor).all()]:
        raise CheckpointError(
            "{file} holds numbers that are not finite (NaN or infinite) in {names}",
            file=file,
            names=", ".join(broken[:3]),
        )
    with torch.no_grad():
        for name, parameter in parameters.items():
            parameter.copy_(tensors[name])
    return model


def save(path: str | Path, model: Model, tokenizer: Tokenizer, *, card: str = "", half: bool = True) -> None:
    """Write a checkpoint directory; each file replaces its predecessor only when it is whole."""
    path = Path(path)
    save_weights(path / WEIGHTS, model, half=half)
    with atomic_path(path / TOKENIZER) as temporary:
        tokenizer.save(temporary)
    write_text(path / CONFIG, model.config.to_json())
    if card:
        write_text(path / CARD, card)


def save_weights(file: Path, model: Model, *, half: bool = True) -> None:
    """One safetensors file, in half precision unless told otherwise; a tied matrix is written once.

    Raises ``ValueError`` for weights that are not finite, or are not in half precision (65,504 is its largest number):
    ``load`` would refuse the file.
    """
    dtype = torch.float16 if half else torch.float32
    tensors = {name: tensor.detach().to("cpu", dtype).contiguous() for name, tensor in own_parameters(model).items()}
    if broken := [name for name, tensor in tensors.items() if not torch.isfinite(tensor).all()]:
        remedy = "; if they are only too large for half precision, save with half=False" if half else ""
        raise ValueError(f"not saved: numbers are not finite in {', '.join(broken[:3])}{remedy}")
    with atomic_path(file) as temporary:
        save_file(tensors, str(temporary))


def own_parameters(model: Model) -> dict[str, torch.nn.Parameter]:
    """Every parameter once: ``named_parameters`` leaves out the second name of a tied matrix."""
    return dict(model.named_parameters(remove_duplicate=True))


def conversion(pickle: str) -> str:
    """The code that makes a file of weights out of a pickle."""
    return f"safetensors.torch.save_file(torch.load({pickle!r}, weights_only=True), {WEIGHTS!r})"


def _check_files(path: Path) -> None:
    if not path.is_dir():
        raise CheckpointError(
            "{path} is not a directory; a checkpoint is a directory with {files}, or a GGUF file",
            path=path,
            files=", ".join((CONFIG, WEIGHTS, TOKENIZER)),
        )
    if not (path / WEIGHTS).is_file() and _pickles(path):
        raise _only_pickles(path)
    if missing := [file for file in (CONFIG, WEIGHTS, TOKENIZER) if not (path / file).is_file()]:
        raise CheckpointError(
            "{path} lacks {files}; a checkpoint needs {config}, {weights} and {tokenizer}",
            path=path,
            files=", ".join(missing),
            config=CONFIG,
            weights=WEIGHTS,
            tokenizer=TOKENIZER,
        )


def _pickles(path: Path) -> list[str]:
    return [file.name for pattern in _PICKLES for file in path.glob(pattern)]


def _only_pickles(path: Path) -> CheckpointError:
    name = _pickles(path)[0]
    return CheckpointError(
        "{path} holds {name}, a pickle, which may run any code when opened; convert it where you trust it: {code}",
        path=path,
        name=name,
        code=conversion(name),
    )


def _check_size(config: ModelConfig, file: Path, stored: Mapping[str, tuple]) -> None:
    """Refuse a config that asks for far more numbers than its file holds: nothing is allocated for it.

    A small model may be built all the same, so that the tensor that does not fit is named.
    """
    found, expected = sum(prod(shape) for shape in stored.values()), _n_numbers(config)
    if expected > 4 * found + SMALL:
        what = Message("it holds {found} numbers but the config asks for {expected}", found=found, expected=expected)
        raise CheckpointError("{file} does not fit its config.json: {problems}", file=file, problems=what)


def _n_numbers(config: ModelConfig) -> int:
    """About how many numbers a model takes: 4 d² an attention, 2 d d_ff a feed-forward layer, and its tables."""
    width, n_layers = config.d_model, config.n_encoder_layers + config.n_decoder_layers
    n_attentions = n_layers + (config.n_decoder_layers if config.has_encoder else 0)
    vocabulary = config.patch_size**2 if isinstance(config, PictureConfig) else config.vocabulary_size
    tables = (config.has_encoder + config.has_decoder) * (vocabulary + config.max_length)
    return width * (4 * width * n_attentions + 2 * config.d_ff * n_layers + tables)


def _compare(file: Path, expected: dict[str, tuple], stored: dict[str, tuple]) -> None:
    if problems := _differences(expected, stored):
        raise CheckpointError(
            "{file} does not fit its config.json: {problems}",
            file=file,
            problems=reduce(lambda one, other: Message("{one}; {other}", one=one, other=other), problems),
        )


def _differences(expected: dict[str, tuple], stored: dict[str, tuple]) -> list[Message]:
    lacking = [name for name in expected if name not in stored]
    problems = [Message("it lacks {name} {shape}", name=name, shape=expected[name]) for name in lacking]
    unknown = [name for name in stored if name not in expected]
    problems += [Message("it has an unknown {name} {shape}", name=name, shape=stored[name]) for name in unknown]
    problems += [
        Message(
            "{name} is {found} in the file but {expected} by the config",
            name=name,
            found=stored[name],
            expected=expected[name],
        )
        for name in expected
        if name in stored and stored[name] != expected[name]
    ]
    return problems[:3] + ([Message("and {count} more", count=len(problems) - 3)] if len(problems) > 3 else [])


def file_of_other_weights(checkpoint: Checkpoint, file: str, found: str) -> CheckpointError:
    """The error for a ``file`` that names the weights with the fingerprint ``found`` and not these."""
    found, these = shown_fingerprints(str(found), checkpoint.fingerprint)
    return CheckpointError(
        "{path} of {name} was made from other weights ({found}, but these are {these}), so it is not used.",
        path=file,
        name=checkpoint.name,
        found=found,
        these=these,
    )
