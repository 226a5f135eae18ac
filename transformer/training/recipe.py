"""Training recipe: one TOML file per checkpoint, read into frozen dataclasses."""

import re
import tomllib
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from transformer.config import (
    TRUTH,
    ModelConfig,
    PictureConfig,
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

KIND_OF_TASK = {
    "translation": "encoder-decoder",
    "next-token": "decoder-only",
    "packed-next-token": "decoder-only",
    "masked-token": "encoder-only",
    "masked-token-next-sentence": "encoder-only",
    "classification": "encoder-only",
    "picture-classification": "encoder-only",
    "text-to-text": "encoder-decoder",
}
TASKS = tuple(KIND_OF_TASK)
_FOLDER = re.compile(r"\w[\w.+-]{0,99}")
_POSITIVE = number("it must be greater than 0", lambda value: value > 0)
_SHARE = number("it must be at least 0 and below 1", lambda value: 0 <= value < 1)
_COUNTS = ("steps", "batch_tokens", "max_sequence_length", "warmup_steps", "log_every", "evaluate_every")
_RULES: dict[str, Rule] = {
    **dict.fromkeys(("name", "corpus", "start_from", "teacher"), of_type(str, "a string")),
    "task": one_of(TASKS),
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
    """Everything that a run depends on besides the data.

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
        new_tokenizer: Train a new tokenizer anyway; the embedding of a new token starts as the mean over the former
            tokens of its text.
        whole_words: How many of the most frequent English words become single tokens when a tokenizer is trained, in
            British and American spelling.
        both_spellings: Repeat the examples with British or American spelling in the other one.
        joined_examples: How many examples to add that join two or three short ones (``joined_pairs``).
        fresh_self_attention: Initialise W_Q and W_K of self-attention randomly anyway, for a model with other
            positions.
        teacher: Checkpoint directory of a teacher model with the same tokenizer and task (``objectives.Teacher``).
        teacher_weight: Share of the loss that is its prediction.
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
        kind, classifies = KIND_OF_TASK[self.task], self.task.endswith("classification")
        if self.model.kind != kind:
            raise ValueError(f"task {self.task!r} needs a model of kind {kind!r}, not {self.model.kind!r}")
        if classifies != bool(self.model.n_classes):
            needs = "needs" if classifies else "has no"
            raise ValueError(f"task {self.task!r} {needs} class_names; they are {self.model.class_names}")
        if self.model.predicts_next_sentence != (self.task == "masked-token-next-sentence"):
            raise ValueError(
                f"task is {self.task!r} and n_segments {self.model.n_segments}; 'masked-token-next-sentence' and "
                "n_segments = 2 belong together"
            )
        if self.next_sentence_weight != 1.0 and not self.model.predicts_next_sentence:
            raise ValueError(
                f"next_sentence_weight is {self.next_sentence_weight!r}, but {self.task!r} predicts no next sentence"
            )
        if isinstance(self.model, PictureConfig) != (self.task == "picture-classification"):
            raise ValueError(f"task is {self.task!r}; 'picture-classification' and patch_size belong together")
        prefixes = self.model.task_prefixes
        if (self.task == "text-to-text") != bool(prefixes) or not set(prefixes) <= set(TEXT_TASKS):
            raise ValueError(
                f"task {self.task!r} does not fit task_prefixes {list(prefixes)}; text-to-text needs some of "
                f"{list(TEXT_TASKS)}, other tasks none"
            )
        needed = {folder for prefix in prefixes for folder in corpus_folders(TEXT_TASKS[prefix].corpus)}
        if prefixes and set(corpus_folders(self.corpus)) != needed:
            raise ValueError(f"corpus is {self.corpus!r}; these tasks are made from {' + '.join(sorted(needed))}")
        if (self.whole_words or self.both_spellings or self.joined_examples) and self.task != "translation":
            raise ValueError(
                f"whole_words, both_spellings and joined_examples need the task 'translation', not {self.task!r}"
            )
        if self.entropy is not None and classifies:
            raise ValueError(f"[entropy] needs a task that predicts tokens, not {self.task!r}")
        if self.teacher and classifies:
            raise ValueError(f"teacher is {self.teacher!r}; it needs a task that predicts tokens, not {self.task!r}")
        longest = self.model.max_length
        if self.max_sequence_length > longest:
            raise ValueError(f"max_sequence_length is {self.max_sequence_length}, but the model reads {longest} tokens")


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
    if not isinstance(values["model"], dict):
        raise ValueError(f"{path}: model is {values['model']!r}; it must be a table, [model]")
    model_class = config_class(values["model"])
    if unknown := sorted(set(values["model"]) - {field.name for field in fields(model_class)}):
        raise ValueError(f"{path} has unknown entries {unknown} in [model]")
    try:
        values["model"] = model_class(**values["model"])
        if "entropy" in values:
            values["entropy"] = Entropy(**values["entropy"])
        return Recipe(**values)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{path}: {error}") from error
