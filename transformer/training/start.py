"""The start of a training run: its texts, its tokenizer, its model and its objective."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from transformer.attention import MultiHeadAttention
from transformer.disk.whole_files import atomic_path
from transformer.feed_forward import FeedForward
from transformer.files.build import build_model
from transformer.files.checkpoints import CONFIG, TOKENIZER, WEIGHTS, load_weights
from transformer.files.layout import own_config
from transformer.models import Model
from transformer.pictures.patch_tokenizer import PatchTokenizer, load_tokenizer
from transformer.text.tokenizer import Tokenizer
from transformer.training.attention_entropy import price
from transformer.training.corpora import Corpus, load_corpus
from transformer.training.joined_pairs import joined_pairs
from transformer.training.objectives import OBJECTIVES, MaskedTokenNextSentence, Objective, Teacher
from transformer.training.recipe import Recipe
from transformer.training.spellings import frequent_words, other_spelling
from transformer.training.text_tasks import load_text_tasks

if TYPE_CHECKING:
    from accelerate import Accelerator

_BY_TOKEN = "embedding.table.weight", "vocabulary_projection.weight"  # matrices with one row per token
_SELF_SCORES = re.compile(r"\bself_attention\.(query|key)_projection\.")


def run_corpus(recipe: Recipe, data: str | Path) -> Corpus:
    """Return the texts of a recipe's corpus, or of its tasks."""
    if recipe.task == "text-to-text":
        return load_text_tasks(recipe.model.task_prefixes, data, temperature=recipe.mixing_temperature)
    corpus = load_corpus(recipe.corpus, data)
    train = list(corpus.train)
    if recipe.both_spellings:
        train += [(other, french) for english, french in train if (other := other_spelling(english)) != english]
    if recipe.joined_examples:
        train += joined_pairs(train, recipe.joined_examples, seed=recipe.seed)
    return replace(corpus, train=train)


def run_tokenizer(recipe: Recipe, corpus: Corpus, directory: Path, accelerator: Accelerator) -> Tokenizer:
    """Return the run's tokenizer, trained at the first start, or that of ``start_from``."""
    if recipe.start_from and not recipe.new_tokenizer:
        return Tokenizer.load(Path(recipe.start_from) / "tokenizer.json")
    path = directory / "tokenizer.json"
    if not path.is_file() and accelerator.is_main_process:
        with atomic_path(path) as temporary:
            _new_tokenizer(recipe, corpus).save(temporary)
    accelerator.wait_for_everyone()
    return load_tokenizer(recipe.model, path)


def _new_tokenizer(recipe: Recipe, corpus: Corpus) -> Tokenizer:
    if recipe.model.reads_images:
        return PatchTokenizer(recipe.model)
    texts = [text for example in corpus.train for text in example if isinstance(text, str)]
    words = frequent_words([example[0] for example in corpus.train], recipe.whole_words)
    return Tokenizer.train(texts, recipe.model.vocabulary_size, whole_words=words)


def initial_model(recipe: Recipe, tokenizer: Tokenizer) -> Model:
    """Return a model with random weights, or those of ``start_from``, stack by stack.

    With ``new_tokenizer``, the embeddings are converted to the tokens of ``tokenizer``.
    """
    model = build_model(recipe.model)
    if recipe.start_from:
        pretrained = _load_own_model(Path(recipe.start_from))
        if recipe.new_tokenizer:
            former = load_tokenizer(pretrained.config, Path(recipe.start_from) / TOKENIZER)
            former_ids = _former_ids(former, tokenizer)
        for stack in ("encoder", "decoder"):
            if hasattr(model, stack) and hasattr(pretrained, stack):
                weights = getattr(pretrained, stack).state_dict()
                if recipe.new_tokenizer:
                    weights = _average_embeddings(weights, former_ids)
                if recipe.fresh_self_attention:
                    weights = {name: weight for name, weight in weights.items() if not _SELF_SCORES.search(name)}
                getattr(model, stack).load_state_dict(weights, strict=False)
    of_weights = recipe.inner_dropout if recipe.attention_dropout is None else recipe.attention_dropout
    for module in model.modules():
        if isinstance(module, MultiHeadAttention) and of_weights is not None:
            module.dropout = of_weights
        elif isinstance(module, FeedForward) and recipe.inner_dropout is not None:
            module.dropout.p = recipe.inner_dropout
    return model


def _former_ids(former: Tokenizer, tokenizer: Tokenizer) -> list[list[int]]:
    """Return for each token of ``tokenizer`` the ids of the same text in ``former``."""
    ids = []
    for piece, raw in zip(tokenizer.pieces, tokenizer.token_bytes, strict=True):
        text = raw.decode("utf-8", errors="replace")
        if (same := former.to_id(piece)) is not None:
            ids.append([same])
        elif "\N{REPLACEMENT CHARACTER}" in text:  # part of a character: take its bytes
            ids.append([id for byte in piece if (id := former.to_id(byte)) is not None])
        else:
            ids.append(former.encode(text.removeprefix(" "), continues=not text.startswith(" ")))
    return ids


def _average_embeddings(weights: Mapping[str, Tensor], former_ids: list[list[int]]) -> dict[str, Tensor]:
    """Return the weights with one row per new token in ``_BY_TOKEN``: the mean of its former rows."""
    return {
        name: torch.stack([weight[ids].mean(dim=0) for ids in former_ids]) if name in _BY_TOKEN else weight
        for name, weight in weights.items()
    }


def _load_own_model(directory: Path) -> Model:
    """Return the model of one of our own checkpoint directories."""
    return load_weights(own_config(directory / CONFIG), directory / WEIGHTS)


def set_own_dropout(model: Model, probability: float) -> None:
    """Set the dropout of embeddings and outputs of sub-layers, which ``inner_dropout`` does not affect."""
    inner = {id(module.dropout) for module in model.modules() if isinstance(module, FeedForward)}
    for module in model.modules():
        if isinstance(module, nn.Dropout) and id(module) not in inner:
            module.p = probability


def training_objective(recipe: Recipe, model: Model, tokenizer: Tokenizer) -> Objective:
    """Return the objective for training; evaluation on dev always uses the plain objective of the task."""
    objective = OBJECTIVES[recipe.task](model, recipe.label_smoothing)
    if recipe.entropy is not None:
        objective.entropy = partial(price, recipe.entropy.penalty, recipe.entropy.falls_from)
    if isinstance(objective, MaskedTokenNextSentence):
        objective.weight = recipe.next_sentence_weight
    if recipe.teacher:
        objective.teacher = Teacher(OBJECTIVES[recipe.task](_teacher(recipe, tokenizer)), recipe.teacher_weight)
    return objective


def _teacher(recipe: Recipe, tokenizer: Tokenizer) -> Model:
    """Return the teacher model, wrapped for the student's objective.

    Raises:
        ValueError: If its tokens are not those of the student.
    """
    teacher = _load_own_model(Path(recipe.teacher))
    theirs, ours = (f"{config.kind}, {config.vocabulary_size} tokens" for config in (teacher.config, recipe.model))
    if theirs != ours:
        raise ValueError(f"teacher is {recipe.teacher!r} ({theirs}); the model to train ({ours}) must be alike")
    if load_tokenizer(teacher.config, Path(recipe.teacher) / TOKENIZER).pieces != tokenizer.pieces:
        raise ValueError(f"teacher is {recipe.teacher!r}; its tokens are not those of this run")
    return teacher
