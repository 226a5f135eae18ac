"""Folders in Hugging Face's layout and GGUF files: their fields, and which files hold what."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

from transformer.disk.config_limits import check_config
from transformer.disk.gguf_file import GgufFile, is_gguf, parts_of
from transformer.disk.plain_files import json_object, read_plain_text
from transformer.errors import CheckpointError, text_of
from transformer.guests.gguf import config_fields

WEIGHTS, INDEX = "model.safetensors", "model.safetensors.index.json"
POOLING = Path("1_Pooling", "config.json")  # written by Sentence Transformers


def read_json(file: Path) -> dict:
    """Return the JSON object in ``file``. Raises ``CheckpointError`` if it contains none."""
    try:
        return json_object(file)
    except (OSError, ValueError) as error:
        raise CheckpointError(text_of(error)) from error


def read_fields(path: Path) -> dict:
    """Return the fields of a folder's ``config.json``, or the equivalent fields of a GGUF file, unchecked."""
    return config_fields(GgufFile(path)) if is_gguf(path) else read_json(path / "config.json")


def fields_of(path: Path) -> dict:
    """Return what ``read_fields`` returns, within the limits of ``check_config``.

    Raises:
        CheckpointError: If they cannot be read, or a limit is exceeded.
    """
    fields = read_fields(path)
    try:
        check_config(fields)
    except CheckpointError as error:
        raise CheckpointError(f"{config_place(path)}: {text_of(error)}") from error
    return fields


def config_place(path: Path) -> str:
    """Return the name of the fields' source for error messages."""
    return f"{path}, whose keys are read as a config.json" if is_gguf(path) else str(path / "config.json")


def check_not_quantised(fields: Mapping[str, object]) -> None:
    """Refuse weights in the format of AWQ, GPTQ, bitsandbytes or the like.

    Raises:
        CheckpointError: If ``config.json`` names such a format.
    """
    if found := fields.get("quantization_config"):
        method = found.get("quant_method") if isinstance(found, dict) else found
        raise CheckpointError(
            f"the weights are quantised ({str(method)[:40]}), and only their own kernels read them. Take the "
            "folder of the same model in float16 or bfloat16, or a GGUF file of it."
        )


def gives_vectors(folder: Path) -> bool:
    """Return whether Sentence Transformers wrote the folder: it has no head, whatever its config names."""
    return (folder / POOLING).is_file()


def pooling_of(folder: Path) -> str:
    """Return how a sentence embedding is pooled, from Sentence Transformers' files or a GGUF file's keys.

    The default is "mean". Raises ``CheckpointError`` for an unknown method.
    """
    if is_gguf(folder):
        pooling = GgufFile(folder).get("bert.pooling_type", 1)
        pooling = {0: "mean", 1: "mean", 2: "cls"}.get(pooling, pooling)
        source = folder
    else:
        source = folder / POOLING
        fields = read_json(source) if source.is_file() else {}
        modes = [name for name in fields if name.startswith("pooling_mode_") and fields[name] is True]
        pooling = fields.get("pooling_mode") or modes or "mean"
        if isinstance(pooling, list) and len(pooling) == 1:
            pooling = str(pooling[0]).removeprefix("pooling_mode_").removesuffix("_tokens").removesuffix("_token")
    known = {"mean": "mean", "cls": "first", "max": "max"}
    if not isinstance(pooling, str) or pooling not in known:
        raise CheckpointError(
            f"{source} computes the vector of a sentence by {repr(pooling)[:80]}; known are {', '.join(known)}"
        )
    return known[pooling]


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


def stored_files(path: Path) -> list[Path]:
    """Return the files with the weights of a folder, or the parts of a GGUF file."""
    return parts_of(path) if is_gguf(path) else weight_files(path)


def fingerprint_files(folder: Path) -> tuple[Path, ...]:
    """Return the files that determine what a model computes: weights, configs, tokenizers."""
    if is_gguf(folder):
        return tuple(parts_of(folder))
    weights = [file.name for file in weight_files(folder)]
    kinds = (".json", ".txt", ".spm", ".model")
    small = [file.name for file in folder.iterdir() if file.is_file() and file.suffix in kinds]
    return tuple(folder / name for name in sorted({*weights, *small}))
