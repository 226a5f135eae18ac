"""A folder in Hugging Face's layout, or a GGUF file, opened as a model."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from transformer.disk.config_limits import check_config
from transformer.disk.gguf_file import GgufFile, is_gguf, parts_of
from transformer.disk.plain_files import json_object
from transformer.errors import CheckpointError, text_of
from transformer.families.bert import BERT, SEGMENTS
from transformer.families.build import build_family
from transformer.families.deberta import DEBERTA
from transformer.families.family import Family
from transformer.families.family_config import FamilyConfig
from transformer.families.gguf import GgufWeights, config_fields
from transformer.families.gpt2 import GPT2
from transformer.families.llama import GEMMA, GEMMA2, GEMMA3, GEMMA3_PARTS, LLAMA, MISTRAL, QWEN2, QWEN3
from transformer.families.lora import Change
from transformer.families.marian import MARIAN
from transformer.families.memory import check_memory
from transformer.families.neox import NEOX
from transformer.families.t5 import T5
from transformer.families.values import Values
from transformer.families.weights import StoredWeights, Table, assign, weight_files
from transformer.models import Model
from transformer.variants.half_precision import saves_memory

FAMILIES: dict[str, Family] = {
    "gpt2": GPT2,
    "bert": BERT,
    "gpt_neox": NEOX,
    "llama": LLAMA,
    "mistral": MISTRAL,
    "qwen2": QWEN2,
    "qwen3": QWEN3,
    "gemma": GEMMA,
    "gemma2": GEMMA2,
    "gemma3_text": GEMMA3,
    "gemma3": GEMMA3_PARTS,
    "marian": MARIAN,
    "t5": T5,
    "deberta-v2": DEBERTA,
}
_CLASSIFIERS = ("bert", "deberta-v2")
POOLING = Path("1_Pooling", "config.json")  # written by Sentence Transformers
_TASKS = ("TokenClassification", "QuestionAnswering", "MultipleChoice", "NextSentencePrediction", "ImageClassification")


@dataclass(frozen=True)
class OpenedModel:
    """A third-party model as it was opened.

    Attributes:
        mapping: The stored name of each of our tensors.
        unread: Names of stored tensors that the model does not use.
    """

    model: Model
    config: FamilyConfig
    mapping: dict[str, str]
    unread: tuple[str, ...]


def read_json(file: Path) -> dict:
    """Return the JSON object in ``file``. Raises ``CheckpointError`` if it contains none."""
    try:
        return json_object(file)
    except OSError as error:
        raise CheckpointError(f"{file} is not valid JSON: {text_of(error)}") from error
    except ValueError as error:
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
        where = path if is_gguf(path) else path / "config.json"
        raise CheckpointError(f"{where}: {text_of(error)}") from error
    return fields


def _weights(
    path: Path, family: Family, fields: dict, stack: ExitStack, changes: Mapping[str, Change] | None
) -> StoredWeights | GgufWeights:
    if is_gguf(path):
        return GgufWeights(GgufFile(path), fields)
    return StoredWeights(path, family.prefixes, stack, changes)


def read_config(folder: Path, fields: dict) -> FamilyConfig:
    """Return the config that ``config.json`` describes, without reading the weights."""
    try:
        family = _family(fields)
        check_not_quantised(fields)
        config = family.config(Values(fields))
        return replace(config, pooling=pooling_of(folder)) if _names_headless(config, fields) else config
    except CheckpointError as error:
        if is_gguf(folder):
            raise CheckpointError(f"{folder}, whose keys are read as a config.json: {text_of(error)}") from error
        raise CheckpointError(f"{folder / 'config.json'}: {text_of(error)}") from error


def check_not_quantised(fields: dict) -> None:
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


def open_model(folder: Path, fields: dict, changes: Mapping[str, Change] | None = None) -> OpenedModel:
    """Open the model of a folder with the ``config.json`` fields ``fields``.

    Nothing is allocated before all checks have passed. ``changes`` of an adapter are added to its tensors. The matrices
    of a large model stay in the half precision of their file (``transformer.variants.half_precision``).

    Raises:
        CheckpointError: The family is unknown, the config does not fit the weights, weights are missing or not finite,
            or the model does not fit into memory.
    """
    family, config = _family(fields), read_config(folder, fields)
    with ExitStack() as stack:
        weights = _weights(folder, family, fields, stack, changes)
        half = saves_memory(weights.n_half)
        check_memory(folder, 4 * weights.n_numbers - (2 * weights.n_half if half else 0))
        config = _resolve_config(config, family, weights, fields)
        table = _add_tied_names(family.table(config), family, config)
        config = _resolve_pooling(folder, config, table, weights)
        model = build_family(config)
        mapping = {
            ours: weights.name_in_file(theirs) for ours, theirs in assign(model, table, weights, half=half).items()
        }
        unread = tuple(sorted(map(weights.name_in_file, weights.unread())))
    return OpenedModel(model.eval(), config, mapping, unread)


def _family(fields: dict) -> Family:
    kind = fields.get("model_type")
    if not isinstance(kind, str) or kind not in FAMILIES:
        raise CheckpointError(
            f"config.json says model_type {repr(kind)[:80]}; the families that can be opened are {', '.join(FAMILIES)}"
        )
    architectures = fields.get("architectures") or []
    for name in architectures if isinstance(architectures, list) else []:
        only_text = "SequenceClassification" in str(name) and kind not in _CLASSIFIERS
        if only_text or any(task in str(name) for task in _TASKS):
            more = "" if only_text else ", and those that classify sentences"
            raise CheckpointError(
                f"config.json says architectures {str(name)!r}; of {kind} only models that predict tokens can be "
                f"opened{more}"
            )
    return FAMILIES[kind]


def _resolve_config(config: FamilyConfig, family: Family, weights: StoredWeights, fields: dict) -> FamilyConfig:
    """Return the config completed by what only the weights determine: tied projections and biases.

    A config that declares the projection tied is trusted if the file holds one of the two matrices, or two equal ones.
    """
    text = fields.get("text_config")
    all_fields = {**text, **fields} if isinstance(text, dict) else fields
    tied = config.family == "t5" or Values(all_fields).flag("tie_word_embeddings", default=family.tied_by_default)
    output = next((name for name in family.output if name in weights), None)
    table = next((name for name in family.embedding if name in weights), None)
    if tied and output is not None and table is not None:
        same_shape = weights.shape(output) == weights.shape(table)
        tied = same_shape and torch.equal(weights.read(output), weights.read(table))
    tables = [f"{stack}.embed_tokens.weight" for stack in ("encoder", "decoder")]
    shared = config.shared_tables and not (
        all(name in weights for name in tables) and not torch.equal(*map(weights.read, tables))
    )
    bias = config.logit_bias and "final_logits_bias" in weights
    n_segments = weights.shape(SEGMENTS)[0] if config.n_segments and SEGMENTS in weights else config.n_segments
    stored = config.family == "marian" and "encoder.embed_positions.weight" in weights
    return replace(
        config,
        tie_embeddings=tied,
        shared_tables=shared,
        logit_bias=bias,
        stored_positions=stored,
        n_segments=n_segments,
    )


def _add_tied_names(table: Table, family: Family, config: FamilyConfig) -> Table:
    """Let either stored name serve for E and the projection where they are tied."""
    if config.tie_embeddings:
        for name, row in table.items():
            if name.endswith(".embedding.table.weight"):
                table[name] = replace(row, names=row.names + family.output)
    return table


def _names_headless(config: FamilyConfig, fields: dict) -> bool:
    """Whether a config names an encoder without a head, such as BertModel; the weights decide in the end."""
    named = fields.get("architectures")
    names = named if isinstance(named, list) else []
    headless = bool(names) and all(str(name).endswith("Model") for name in names)
    return config.kind == "encoder-only" and not config.n_classes and headless


def _resolve_pooling(folder: Path, config: FamilyConfig, table: Table, weights: StoredWeights) -> FamilyConfig:
    """Return the config, with a pooling method if the file has no head and so gives sentence embeddings.

    Raises:
        CheckpointError: The config names a classifier, and its head is missing.
    """
    if config.kind != "encoder-only":
        return config
    head = "classifier.dense.weight" if config.n_classes else "encoder.vocabulary_projection.dense.weight"
    if any(name in weights for name in table[head].names):
        return replace(config, pooling="")
    if config.n_classes:
        raise CheckpointError(f"{folder} lacks the weights {table[head].names[0]}, which config.json asks for")
    return replace(config, pooling=config.pooling or pooling_of(folder))


def gives_vectors(folder: Path) -> bool:
    """Whether Sentence Transformers wrote the folder: it has no head, whatever its config names."""
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
