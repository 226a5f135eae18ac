"""A folder in Hugging Face's layout, or a GGUF file, becomes a model of our own: config, weights, what was not read."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from transformer.disk.gguf_file import GgufFile, is_gguf, parts_of
from transformer.disk.plain_files import json_object
from transformer.errors import CheckpointError
from transformer.families.bart import BART, M2M100, MARIAN
from transformer.families.bert import BERT, DISTILBERT, ROBERTA
from transformer.families.build import build_family
from transformer.families.deberta import DEBERTA
from transformer.families.family import Family
from transformer.families.family_config import FamilyConfig
from transformer.families.gguf import GgufWeights, config_fields
from transformer.families.gpt2 import GPT2
from transformer.families.llama import GEMMA, GEMMA2, GEMMA3, GEMMA3_PARTS, LLAMA, MISTRAL, QWEN2, QWEN3
from transformer.families.memory import check_memory
from transformer.families.neox import NEOX
from transformer.families.t5 import T5
from transformer.families.values import Values
from transformer.families.weights import StoredWeights, Table, assign, weight_files
from transformer.models import Model
from transformer.text.message import Message

FAMILIES: dict[str, Family] = {
    "gpt2": GPT2,
    "bert": BERT,
    "roberta": ROBERTA,
    "distilbert": DISTILBERT,
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
    "bart": BART,
    "m2m_100": M2M100,
    "t5": T5,
    "deberta-v2": DEBERTA,
}
_CLASSIFIERS = ("bert", "roberta", "distilbert", "deberta-v2")
_TASKS = ("TokenClassification", "QuestionAnswering", "MultipleChoice", "NextSentencePrediction", "ImageClassification")


@dataclass(frozen=True)
class OpenedModel:
    """``mapping``: our name of every tensor and the stored one. ``unread``: stored tensors that no part of ours is."""

    model: Model
    config: FamilyConfig
    mapping: dict[str, str]
    unread: tuple[str, ...]


def read_json(file: Path) -> dict:
    """A JSON object. Raises ``CheckpointError`` for a file that holds none."""
    try:
        return json_object(file)
    except OSError as error:
        raise CheckpointError("{path} is not valid JSON: {problem}", path=file, problem=error) from error
    except ValueError as error:
        raise CheckpointError("{problem}", problem=error) from error


def fields_of(path: Path) -> dict:
    """The fields of the ``config.json`` of a folder; of a GGUF file those that it would have."""
    return config_fields(GgufFile(path)) if is_gguf(path) else read_json(path / "config.json")


def _weights(path: Path, family: Family, fields: dict, stack: ExitStack) -> StoredWeights | GgufWeights:
    return GgufWeights(GgufFile(path), fields) if is_gguf(path) else StoredWeights(path, family.prefixes, stack)


def read_config(folder: Path, fields: dict) -> FamilyConfig:
    """What ``config.json`` says, before the weights have been looked at."""
    try:
        config = _family(fields).config(Values(fields))
        return replace(config, pooling=pooling_of(folder)) if _says_headless(config, fields) else config
    except CheckpointError as error:
        if is_gguf(folder):
            raise CheckpointError(
                "{file}, whose keys are read as a config.json: {problem}", file=folder, problem=error
            ) from error
        raise CheckpointError("{where}: {problem}", where=folder / "config.json", problem=error) from error


def open_model(folder: Path, fields: dict) -> OpenedModel:
    """The model of a folder whose ``config.json`` says ``fields``.

    Raises ``CheckpointError`` for a family that is not known, a config that does not fit the weights, weights that are
    missing or not finite, and a model that does not fit into memory. Nothing is allocated before all of that is known.
    """
    family, config = _family(fields), read_config(folder, fields)
    with ExitStack() as stack:
        weights = _weights(folder, family, fields, stack)
        check_memory(folder, weights.n_numbers)
        config = _settled(config, family, weights, fields)
        table = _completed(family.table(config), family, config)
        config = _without_head(folder, config, table, weights)
        model = build_family(config)
        mapping = {ours: weights.name_in_file(theirs) for ours, theirs in assign(model, table, weights).items()}
        unread = tuple(sorted(map(weights.name_in_file, weights.unread())))
    return OpenedModel(model.eval(), config, mapping, unread)


def _family(fields: dict) -> Family:
    kind = fields.get("model_type")
    if not isinstance(kind, str) or kind not in FAMILIES:
        raise CheckpointError(
            "config.json says model_type {kind}; the families that can be opened are {known}",
            kind=repr(kind)[:80],
            known=", ".join(FAMILIES),
        )
    architectures = fields.get("architectures") or []
    for name in architectures if isinstance(architectures, list) else []:
        only_text = "SequenceClassification" in str(name) and kind not in _CLASSIFIERS
        if only_text or any(task in str(name) for task in _TASKS):
            raise CheckpointError(
                "config.json says architectures {name}; of {kind} only models that predict tokens can be opened{more}",
                name=repr(str(name)),
                kind=kind,
                more="" if only_text else Message(", and those that classify sentences"),
            )
    return FAMILIES[kind]


def _settled(config: FamilyConfig, family: Family, weights: StoredWeights, fields: dict) -> FamilyConfig:
    """Return what the file itself determines: whether the projection is tied and has a bias.

    A config that declares them tied is trusted if the file holds one of them, or two equal ones.
    """
    text = fields.get("text_config")
    said = {**text, **fields} if isinstance(text, dict) else fields
    tied = config.family == "t5" or Values(said).flag("tie_word_embeddings", default=family.tied_by_default)
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
    stored = config.family == "marian" and "encoder.embed_positions.weight" in weights
    return replace(config, tie_embeddings=tied, shared_tables=shared, logit_bias=bias, stored_positions=stored)


def _completed(table: Table, family: Family, config: FamilyConfig) -> Table:
    """Where E and the projection are one, either name will do for both."""
    if config.tie_embeddings:
        for name, row in table.items():
            if name.endswith(".embedding.table.weight"):
                table[name] = replace(row, names=row.names + family.output)
    return table


def _says_headless(config: FamilyConfig, fields: dict) -> bool:
    """Whether a config names an encoder alone, such as BertModel; the weights have the last word."""
    named = fields.get("architectures")
    names = named if isinstance(named, list) else []
    headless = bool(names) and all(str(name).endswith("Model") for name in names)
    return config.kind == "encoder-only" and not config.n_classes and headless


def _without_head(folder: Path, config: FamilyConfig, table: Table, weights: StoredWeights) -> FamilyConfig:
    """An encoder of whose head the file holds nothing answers with the vector of a sentence. Raises
    ``CheckpointError`` where it is to classify."""
    if config.kind != "encoder-only":
        return config
    head = "classifier.dense.weight" if config.n_classes else "encoder.vocabulary_projection.dense.weight"
    if any(name in weights for name in table[head].names):
        return replace(config, pooling="")
    if config.n_classes:
        raise CheckpointError(
            "{folder} lacks the weights {name}, which config.json asks for", folder=folder, name=table[head].names[0]
        )
    return replace(config, pooling=config.pooling or pooling_of(folder))


def pooling_of(folder: Path) -> str:
    """How the vector of a sentence is made, by the files of Sentence Transformers or the keys of a GGUF file; "mean"
    where nobody says. Raises ``CheckpointError`` for a way that is not known."""
    if is_gguf(folder):
        said = GgufFile(folder).get("bert.pooling_type", 1)
        said = {0: "mean", 1: "mean", 2: "cls"}.get(said, said)
        place = folder
    else:
        place = folder / "1_Pooling" / "config.json"
        fields = read_json(place) if place.is_file() else {}
        ways = [name for name in fields if name.startswith("pooling_mode_") and fields[name] is True]
        said = fields.get("pooling_mode") or ways or "mean"
        if isinstance(said, list) and len(said) == 1:
            said = str(said[0]).removeprefix("pooling_mode_").removesuffix("_tokens").removesuffix("_token")
    known = {"mean": "mean", "cls": "first", "max": "max"}
    if not isinstance(said, str) or said not in known:
        raise CheckpointError(
            "{file} makes the vector of a sentence by {way}; {known} are known",
            file=place,
            way=repr(said)[:80],
            known=", ".join(known),
        )
    return known[said]


def stored_files(path: Path) -> list[Path]:
    """The files that hold the weights of a folder, or of a GGUF file."""
    return parts_of(path) if is_gguf(path) else weight_files(path)


def fingerprint_files(folder: Path) -> tuple[Path, ...]:
    """Return the files that say what a model computes: weights, configs, tokenizers."""
    if is_gguf(folder):
        return tuple(parts_of(folder))
    weights = [file.name for file in weight_files(folder)]
    kinds = (".json", ".txt", ".spm", ".model")
    small = [file.name for file in folder.iterdir() if file.is_file() and file.suffix in kinds]
    return tuple(folder / name for name in sorted({*weights, *small}))
