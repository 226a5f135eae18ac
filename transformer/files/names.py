"""Checkpoints by name, as Hugging Face, Ollama, LM Studio and pip keep them here; no downloads."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path

from transformer.disk.gguf_file import files_of, is_gguf
from transformer.disk.plain_files import read_plain_text
from transformer.errors import CheckpointError
from transformer.families.foreign_folder import FAMILIES, read_json
from transformer.files.packaged_models import installed_models, packaged_model, path_of
from transformer.files.trainer_folder import last_checkpoint
from transformer.guests.opening import can_run

OWN_CODE = "transformers:"  # in front of a folder or name: its own code in ``transformers`` runs it
OLLAMA, LM_STUDIO = "ollama:", "lmstudio:"
CONFIG = "config.json"
_HUB_NAME = re.compile(r"[\w.-]+/[\w.-]+")
_PLAIN = re.compile(r"[\w.-]+")
_OLLAMA_MODEL = "application/vnd.ollama.image.model"
_LIBRARY = "registry.ollama.ai/library"


def resolve(name: str | Path) -> Path:
    """Return the folder or the GGUF file of a checkpoint.

    A name is a path, one of ``packaged_models``, ``OWNER/NAME`` in the cache of the Hugging Face hub, ``ollama:NAME``
    or ``ollama:NAME:TAG``, or ``lmstudio:OWNER/NAME``. A path that is none of these is returned unchanged.

    Raises:
        CheckpointError: If a name is not on this computer, or a folder has several GGUF files.
    """
    path, text = Path(name), str(name)
    if text.startswith(OLLAMA):
        return _of_ollama(text)
    if text.startswith(LM_STUDIO):
        folders = [folder / text.removeprefix(LM_STUDIO) for folder in _lm_studio_folders()]
        path = next((folder for folder in folders if folder.is_dir()), None)
        if path is None or not _HUB_NAME.fullmatch(text.removeprefix(LM_STUDIO)):
            raise CheckpointError("LM Studio has no {name} on this computer", name=repr(text[:200]))
    if path.is_dir():
        return _only_file(path)
    if not path.exists() and (packaged := packaged_model(text)) is not None:
        return path_of(packaged)
    if not path.exists() and _HUB_NAME.fullmatch(text) and not path.parent.exists():
        return _of_hub(text)
    return path


def found_names() -> tuple[str, ...]:
    """Return the names that ``resolve`` finds and whose files this program can open."""
    packaged = (model.name for model in installed_models())
    return (*packaged, *_hub_names(), *_ollama_names(), *_lm_studio_names())


def _only_file(folder: Path) -> Path:
    """Return what to open in the folder: its last checkpoint, its only GGUF file or the folder itself."""
    if (last := last_checkpoint(folder)) is not None:
        return last
    files = [] if (folder / CONFIG).is_file() else [file for file in files_of(folder) if "mmproj" not in file.name]
    if len(files) > 1:
        raise CheckpointError(
            "{folder} holds several GGUF files; name one of them: {files}",
            folder=folder,
            files=", ".join(file.name for file in files[:20]),
        )
    return files[0] if files else folder


def _of_hub(name: str) -> Path:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError

    try:
        return _only_file(Path(snapshot_download(name, local_files_only=True)))
    except (LocalEntryNotFoundError, HFValidationError, OSError) as error:
        raise CheckpointError(
            "{name} is neither a folder nor a model in the Hugging Face cache of this computer; download it: {command}",
            name=name,
            command=f"python -m transformer fetch {name}",
        ) from error


def _hub_names() -> Iterator[str]:
    from huggingface_hub import constants

    for folder in _folders(Path(constants.HF_HUB_CACHE)):
        if not folder.name.startswith("models--"):
            continue
        for snapshot in _folders(folder / "snapshots"):
            try:
                fields = read_json(snapshot / CONFIG)
                known = str(fields.get("model_type")) in FAMILIES or can_run(fields)
            except CheckpointError:
                known = len(list(files_of(snapshot))) == 1
            if known:
                yield folder.name.removeprefix("models--").replace("--", "/", 1)
                break


def _ollama_folder() -> Path:
    return Path(os.environ.get("OLLAMA_MODELS") or Path.home() / ".ollama" / "models")


def _of_ollama(text: str) -> Path:
    """Return the model file by its manifest, a list of layers, one of which is the model."""
    name, _, tag = text.removeprefix(OLLAMA).partition(":")
    tag, folder = tag or "latest", _ollama_folder()
    owner, _, short = name.rpartition("/")
    if not all(map(_PLAIN.fullmatch, (short, tag, *([owner] if owner else ())))):
        raise CheckpointError("Ollama has no {name} on this computer", name=repr(text[:200]))
    library = f"registry.ollama.ai/{owner}" if owner else _LIBRARY
    try:
        layers = json.loads(read_plain_text(folder / "manifests" / library / short / tag))["layers"]
        digest = next(layer["digest"] for layer in layers if layer["mediaType"] == _OLLAMA_MODEL)
        blob = folder / "blobs" / digest.replace(":", "-")
        if not re.fullmatch(r"sha256-[0-9a-f]{64}", blob.name) or not is_gguf(blob):
            raise ValueError(digest)
    except (OSError, ValueError, LookupError, TypeError, AttributeError, StopIteration, RecursionError) as error:
        raise CheckpointError("Ollama has no {name} on this computer", name=repr(text[:200])) from error
    return blob


def _ollama_names() -> Iterator[str]:
    for model in _folders(_ollama_folder() / "manifests" / _LIBRARY):
        for manifest in sorted(model.iterdir()):
            if manifest.is_file():
                yield OLLAMA + model.name + ("" if manifest.name == "latest" else f":{manifest.name}")


def _lm_studio_folders() -> tuple[Path, ...]:
    if named := os.environ.get("LM_STUDIO_MODELS"):
        return (Path(named),)
    return (Path.home() / ".lmstudio" / "models", Path.home() / ".cache" / "lm-studio" / "models")


def _lm_studio_names() -> Iterator[str]:
    for folder in _lm_studio_folders():
        for owner in _folders(folder):
            for model in _folders(owner):
                if any(files_of(model)):
                    yield f"{LM_STUDIO}{owner.name}/{model.name}"


def _folders(folder: Path) -> list[Path]:
    try:
        return sorted(path for path in folder.iterdir() if path.is_dir())
    except OSError:
        return []
