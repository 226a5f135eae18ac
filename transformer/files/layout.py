"""Layout of a checkpoint directory, and the fingerprint of its contents."""

import hashlib
import re
from collections.abc import Iterable
from pathlib import Path

from transformer.config import ModelConfig
from transformer.disk.gguf_file import is_gguf
from transformer.disk.plain_files import json_object
from transformer.errors import CheckpointError, MessageError, text_of
from transformer.files.names import resolve
from transformer.files.packaged_models import known_model
from transformer.guests.folder import fields_of, fingerprint_files, read_fields
from transformer.guests.lora import base_of, is_adapter
from transformer.guests.opening import guest_config

WEIGHTS, CONFIG, TOKENIZER, CARD = "model.safetensors", "config.json", "tokenizer.json", "README.md"
GENERATION = "generation_config.json"
# digits of a fingerprint, for display only: another file with the same digits can be made in a minute
SHORT_DIGITS = 12
_UPLOADED = re.compile(r"received-[0-9a-f]{64}")
_AT_ONCE = 2**22  # bytes of a file held in memory while hashing


def fingerprint(path: Path, *, weights: str = WEIGHTS) -> str:
    """Return the SHA-256 of the files that determine what a model computes, as 64 hexadecimal digits."""
    path, digest = Path(path), hashlib.sha256()
    if (known := known_model(path)) is not None and not known.weights:
        return known.digest  # of the one file, which was hashed just now
    own: Iterable[Path] = (path / file for file in (weights, CONFIG, TOKENIZER))
    for file in fingerprint_files(path) if is_guest(path) else own:
        with open(file, "rb") as content:
            while part := content.read(_AT_ONCE):
                digest.update(part)
    return digest.hexdigest()


def with_adapter(fingerprint: str, files: Iterable[Path]) -> str:
    """Return the fingerprint of weights that the files of an adapter change."""
    digest = hashlib.sha256(fingerprint.encode())
    for file in files:
        digest.update(file.read_bytes())
    return digest.hexdigest()


def random_fingerprint(fingerprint: str, seed: int) -> str:
    """Return the fingerprint of a model that has random weights instead of those with ``fingerprint``."""
    return hashlib.sha256(f"{fingerprint} with random weights, seed {seed}".encode()).hexdigest()


def file_of_results(path: Path, name: str) -> Path:
    """Return the path at which a file of results, such as ``head_roles.json``, is stored.

    It is in the folder of a checkpoint, or beside a single file, whose name is put in front
    (``tiny.gguf.head_roles.json``). For the weights in ``packaged_models`` it is in their folder in this library.
    """
    if (known := known_model(path)) is not None:
        return known.folder / name
    return path.with_name(f"{path.name}.{name}") if path.is_file() else path / name


def is_same_fingerprint(recorded: object, fingerprint: str) -> bool:
    """Return whether a ``recorded`` fingerprint, from a link or a file, is that of the weights.

    Earlier versions recorded only the first 12 digits, and then only these are compared. So such a link or file cannot
    distinguish models that were made to agree in these digits.
    """
    return recorded in (fingerprint, fingerprint[:SHORT_DIGITS])


def shown_fingerprints(one: str, other: str) -> tuple[str, str]:
    """Return two different fingerprints for display, shortened unless their short forms are equal."""
    short = one[:SHORT_DIGITS], other[:SHORT_DIGITS]
    return (one, other) if short[0] == short[1] else short


def shown_name(name: str) -> str:
    """Return the name of a checkpoint for display; the name of an upload ends with its short fingerprint."""
    return name[: len("received-") + SHORT_DIGITS] if _UPLOADED.fullmatch(name) else name


def is_guest(path: Path) -> bool:
    """Return whether a checkpoint opens as a guest: in Hugging Face's layout, or a GGUF file.

    In Hugging Face's layout, the config names a ``model_type``, which ours never do.
    """
    if is_gguf(Path(path)):
        return True
    try:
        return "model_type" in read_fields(Path(path))
    except CheckpointError:
        return False


def config_of(path: Path) -> ModelConfig:
    """Return the configuration of a checkpoint directory or a GGUF file, without its weights.

    Raises:
        ValueError: If it is invalid.
    """
    path = resolve(base_of(path)) if is_adapter(path) else Path(path)
    return guest_config(path, fields_of(path)) if is_guest(path) else own_config(path / CONFIG)


def own_config(file: Path) -> ModelConfig:
    """Return the configuration in our own layout.

    Raises:
        ValueError: If it is invalid; the message names the file and the problem.
    """
    values = json_object(file)
    try:
        return ModelConfig.from_dict(values)
    except ValueError as error:
        raise MessageError(f"{file}: {text_of(error)}") from error
