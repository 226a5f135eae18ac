"""Checkpoints by name, as Hugging Face and pip keep them here; no downloads."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from transformer.disk.gguf_file import files_of
from transformer.errors import CheckpointError
from transformer.files.packaged_models import installed_models, packaged_model, path_of
from transformer.files.trainer_folder import last_checkpoint
from transformer.guests.folder import read_json

CONFIG = "config.json"
_HUB_NAME = re.compile(r"[\w.-]+/[\w.-]+")


def resolve(name: str | Path) -> Path:
    """Return the folder or the GGUF file of a checkpoint.

    A name is a path, one of ``packaged_models``, or ``OWNER/NAME`` in the cache of the Hugging Face hub. A path that is
    none of these is returned unchanged.

    Raises:
        CheckpointError: If a model of the hub is not on this computer, or a folder has several GGUF files.
    """
    path, text = Path(name), str(name)
    if path.is_dir():
        return _only_file(path)
    if not path.exists() and (packaged := packaged_model(text)) is not None:
        return path_of(packaged)
    if not path.exists() and _HUB_NAME.fullmatch(text) and not path.parent.exists():
        return _of_hub(text)
    return path


def found_names() -> tuple[str, ...]:
    """Return the names that ``resolve`` finds: installed models, and folders of the hub.

    The folders have a config or a GGUF file. Whether models of their type can be opened is not checked, because only
    ``transformers`` knows, which is too slow to import for a list.
    """
    packaged = (model.name for model in installed_models())
    return (*packaged, *_hub_names())


def _only_file(folder: Path) -> Path:
    """Return what to open in the folder: its last checkpoint, its only GGUF file or the folder itself."""
    if (last := last_checkpoint(folder)) is not None:
        return last
    files = [] if (folder / CONFIG).is_file() else [file for file in files_of(folder) if "mmproj" not in file.name]
    if len(files) > 1:
        raise CheckpointError(
            f"{folder} holds several GGUF files; name one of them: {', '.join(file.name for file in files[:20])}"
        )
    return files[0] if files else folder


def _of_hub(name: str) -> Path:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError

    try:
        return _only_file(Path(snapshot_download(name, local_files_only=True)))
    except (LocalEntryNotFoundError, HFValidationError, OSError) as error:
        raise CheckpointError(
            f"{name} is neither a folder nor a model in the Hugging Face cache of this computer; download it: "
            f"python -m transformer fetch {name}"
        ) from error


def _hub_names() -> Iterator[str]:
    from huggingface_hub import constants

    for folder in _folders(Path(constants.HF_HUB_CACHE)):
        if not folder.name.startswith("models--"):
            continue
        for snapshot in _folders(folder / "snapshots"):
            try:
                known = isinstance(read_json(snapshot / CONFIG).get("model_type"), str)
            except CheckpointError:
                known = len(list(files_of(snapshot))) == 1
            if known:
                yield folder.name.removeprefix("models--").replace("--", "/", 1)
                break


def _folders(folder: Path) -> list[Path]:
    try:
        return sorted(path for path in folder.iterdir() if path.is_dir())
    except OSError:
        return []
