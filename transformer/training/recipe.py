"""Training recipe: one TOML file per checkpoint, read into frozen dataclasses."""

import re
import tomllib
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from transformer.config import (
    TRUTH,
    ModelConfig,
    Rule,
    check_fields,
    config_class,
    integer,
    list_of,
    number,
    of_type,
    one_of,
)
from transformer.disk.plain_files import RESERVED, parse_toml, read_plain_text
from transformer.errors import MessageError
from transformer.training.corpora import corpus_folders
from transformer.training.text_tasks import TEXT_TASKS

# Task → the kind of its model, and which of the fields that others lack it has.
NEEDS_OF_TASK = {
    "translation": ("encoder-decoder",),
    "next-token": ("decoder-only",),
    "packed-next-token": ("decoder-only",),
    "masked-token": ("encoder-only",),
    "masked-token-next-sentence": ("encoder-only", "n_segments = 2"),
    "classification": ("encoder-only", "class_names"),
    "picture-classification": ("encoder-only", "class_names", "patch_size"),
    "text-to-text": ("encoder-decoder", "task_prefixes"),
}
_OF_TRANSLATIONS = ("whole_words", "both_spellings", "joined_examples")
_FOLDER = re.compile(r"\w[\w.+-]{0,99}")
_POSITIVE = number("it must be greater than 0", lambda value: value > 0)
_SHARE = number("it must be at least 0 and below 1", lambda value: 0 <= value < 1)
_COUNTS = ("steps", "batch_tokens", "max_sequence_length", "warmup_steps", "log_every", "evaluate_every")
_RULES: dict[str, Rule] = {
    **dict.fromkeys(("name", "corpus", "start_from", "teacher"), of_type(str, "a string")),
    "task": one_of(tuple(NEEDS_OF_TASK)),
    "schedule": one_of(("paper", "cosine")),
    "precision": one_of(("float32", "bfloat16")),
    **dict.fromkeys((*_COUNTS, "evaluate_sentences", "save_every"), integer(1)),
    **dict.fromkeys(("seed", "restart_at", "whole_words", "joined_examples"), integer(0, 2**32 - 1)),
    **dict.fromkeys(("learning_rate", "gradient_clip", "next_sentence_weight"), _POSITIVE),
    **dict.fromkeys(("label_smoothing", "average_decay", "weight_decay"), _SHARE),
    **dict.fromkeys(
        ("inner_dropout", "attention_dropout", "restart_dropout"), lambda value: "" if value is None else _SHARE(value)
    ),
    "restart_learning_rate": number("it must be at least 0", lambda value: value >= 0),
    "teacher_weight": number("it must be from 0 to 1", lambda value: 0 <= value <= 1),
    "mixing_temperature": number("it must be at least 1", lambda value: value >= 1),
    **dict.fromkeys(("fresh_self_attention", "new_tokenizer", "both_spellings"), TRUTH),
    "snapshots": list_of("steps", lambda step: type(step) is int and step >= 0),
}


@dataclass(frozen=True)
class Entropy:
    """Penalty on spread-out attention (``attention_entropy``).

    Attributes:
        penalty: λ, in nats per prediction for evenly spread attention.
        falls_from: Share of the run after which it starts to fall, to 0 at the end (or at the restart).
    """

    penalty: float
    falls_from: float = 0.5

    def __post_init__(self) -> None:
        penalty = number("it must be a number ≥ 0", lambda value: value >= 0)
        try:
            check_fields(self, {"penalty": penalty, "falls_from": _SHARE})
        except MessageError as error:
            raise ValueError(f"[entropy] {error}") from None


@dataclass(frozen=True)
class Recipe:
    """Everything besides the data that determines a run.

    Attributes:
        batch_tokens: Limit for sequences × longest sequence of a batch, including padding.
        learning_rate: Peak; with ``schedule = "paper"`` the factor in the formula of §5.3.
        restart_at: If positive, a second cosine begins after that step, from ``restart_learning_rate``; from there on
            the model's own dropout is ``restart_dropout``, if given.
        average_decay: If positive, an exponential moving average of the weights is kept, evaluated and saved.
        precision: "bfloat16" runs matrix products in mixed precision (Micikevicius et al. 2018), on CPUs and GPUs that
            support it.
        inner_dropout: Dropout of attention weights and of the feed-forward layer's hidden units; by default the model's
            own ``dropout``, which always applies to embeddings and outputs of sub-layers (Vaswani et al. 2017, §5.4
            drop only those).
        attention_dropout: Dropout of attention weights alone.
        start_from: Checkpoint directory that provides the tokenizer and the weights of the encoder and decoder, as far
            as the model has them.
        new_tokenizer: Train a new tokenizer in spite of ``start_from``; the embedding of a new token starts as the mean
            over the former tokens of its text.
        whole_words: How many of the most frequent English words become single tokens when a tokenizer is trained, in
            British and American spelling.
        both_spellings: Repeat examples with British or American spellings in the other spelling.
        joined_examples: How many examples to add that join two or three short ones (``joined_pairs``).
        fresh_self_attention: Initialise W_Q and W_K of self-attention randomly in spite of ``start_from``, for a model
            with another positional encoding.
        teacher: Checkpoint directory of a teacher model with the same tokenizer and task (``objectives.Teacher``).
        teacher_weight: Weight of the teacher model's predictions in the loss, from 0 to 1.
        mixing_temperature: How the tasks of "text-to-text" are mixed (``text_tasks.mixed_counts``).
        entropy: Penalty on spread-out attention.
        next_sentence_weight: Factor of the next-sentence loss beside that of masked tokens; 1 in the paper.

    Raises:
        ValueError: If an entry is invalid; the message names it, its value and what would be valid.
    """

    name: str
    task: str
    corpus: str
    model: ModelConfig
    seed: int = 1
    steps: int = 10_000
    batch_tokens: int = 2_000
    max_sequence_length: int = 64
    learning_rate: float = 2e-3
    schedule: str = "cosine"
    warmup_steps: int = 800
    restart_at: int = 0
    restart_learning_rate: float = 0.0
    restart_dropout: float | None = None
    label_smoothing: float = 0.1
    gradient_clip: float = 1.0
    weight_decay: float = 0.0
    average_decay: float = 0.0
    inner_dropout: float | None = None
    attention_dropout: float | None = None
    precision: str = "float32"
    log_every: int = 50
    evaluate_every: int = 1_000
    evaluate_sentences: int = 300
    save_every: int = 500
    snapshots: tuple[int, ...] = field(default=())
    start_from: str = ""
    new_tokenizer: bool = False
    whole_words: int = 0
    both_spellings: bool = False
    joined_examples: int = 0
    fresh_self_attention: bool = False
    teacher: str = ""
    teacher_weight: float = 0.5
    mixing_temperature: float = 1.0
    entropy: Entropy | None = None
    next_sentence_weight: float = 1.0

    def __post_init__(self) -> None:
        check_fields(self, _RULES)
        if not _FOLDER.fullmatch(self.name) or RESERVED.fullmatch(self.name) or self.name.endswith("."):
            # a run and a checkpoint are in folders of this name
            raise ValueError(f"name is {self.name!r}; it must be letters, digits, hyphens and dots")
        if self.restart_dropout is not None and not self.restart_at:
            raise ValueError(f"restart_dropout is {self.restart_dropout!r}, but there is no restart_at")
        if self.restart_at and not (
            self.schedule == "cosine"
            and self.warmup_steps < self.restart_at < self.steps
            and self.restart_learning_rate > 0.0
        ):
            raise ValueError(
                f"restart_at is {self.restart_at}; a restart needs schedule cosine, a step between warmup_steps and "
                f"steps, and a restart_learning_rate greater than 0"
            )
        object.__setattr__(self, "snapshots", tuple(self.snapshots))
        self._check_model()

    def _check_model(self) -> None:
        task, model, prefixes = self.task, self.model, self.model.task_prefixes
        kind, *needed = NEEDS_OF_TASK[task]
        if model.kind != kind:
            raise ValueError(f"task {task!r} needs a model of kind {kind!r}, not {model.kind!r}")
        has = {
            "class_names": bool(model.n_classes),
            "n_segments = 2": model.predicts_next_sentence,
            "patch_size": model.reads_images,
            "task_prefixes": bool(prefixes),
        }
        for name, given in has.items():
            if given != (name in needed):
                raise ValueError(f"task {task!r} {'needs' if name in needed else 'has no'} {name} in [model]")
        if unknown := sorted(set(prefixes) - set(TEXT_TASKS)):
            raise ValueError(f"task_prefixes has {unknown[0]!r}; known are {list(TEXT_TASKS)}")
        folders = {folder for prefix in prefixes for folder in corpus_folders(TEXT_TASKS[prefix].corpus)}
        if prefixes and set(corpus_folders(self.corpus)) != folders:
            raise ValueError(f"corpus is {self.corpus!r}; these tasks are made from {' + '.join(sorted(folders))}")
        predicts_tokens = not model.n_classes
        for name, fits, wanted in (
            *((name, task == "translation", "the task 'translation'") for name in _OF_TRANSLATIONS),
            *((name, predicts_tokens, "a task that predicts tokens") for name in ("entropy", "teacher")),
            ("next_sentence_weight", model.predicts_next_sentence, "a task that predicts the next sentence"),
        ):
            if not fits and getattr(self, name) != getattr(Recipe, name):
                raise ValueError(f"{name} is {getattr(self, name)!r}; it needs {wanted}, not {task!r}")
        if self.max_sequence_length > model.max_length:
            raise ValueError(
                f"max_sequence_length is {self.max_sequence_length}, but the model reads {model.max_length} tokens"
            )


def load_recipe(path: str | Path) -> Recipe:
    """Read a recipe.

    Raises:
        ValueError: If it is invalid; the message names the file and the problem.
    """
    path = Path(path)
    try:
        values: dict[str, Any] = parse_toml(read_plain_text(path))
    except FileNotFoundError:
        raise ValueError(f"there is no recipe {path}; the shipped ones are in configs/") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is not valid TOML: {error}") from error
    known = {field.name for field in fields(Recipe)}
    if unknown := sorted(set(values) - known):
        raise ValueError(f"{path} has unknown entries {unknown}; known are {sorted(known)}")
    if missing := sorted({"name", "task", "corpus", "model"} - set(values)):
        raise ValueError(f"{path} lacks {missing}")
    if not isinstance(model := values["model"], dict):
        raise ValueError(f"{path}: model is {model!r}; it must be a table, [model]")
    model_class = config_class(model)
    if unknown := sorted(set(model) - {field.name for field in fields(model_class)}):
        raise ValueError(f"{path} has unknown entries {unknown} in [model]")
    try:
        values["model"] = model_class(**model)
        if "entropy" in values:
            values["entropy"] = Entropy(**values["entropy"])
        return Recipe(**values)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{path}: {error}") from error
