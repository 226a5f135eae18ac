"""A training recipe: one TOML file per checkpoint, read into frozen dataclasses."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from transformer.config import ModelConfig

TASKS = ("translation", "next-token", "masked-token", "classification")


@dataclass(frozen=True)
class Recipe:
    """Everything that a run depends on besides the data.

    ``batch_tokens`` bounds sequences × longest sequence of a batch, padding included. ``learning_rate`` is the peak;
    with ``schedule = "paper"`` it is the factor in front of the formula of §5.3. ``average_decay`` > 0 keeps an
    exponential moving average of the weights, and that average is what is evaluated and saved. ``precision`` "bfloat16"
    runs the matrix products in mixed precision (Micikevicius et al. 2018), on CPUs and GPUs that have units for it.
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
    label_smoothing: float = 0.1
    gradient_clip: float = 1.0
    weight_decay: float = 0.0
    average_decay: float = 0.0
    precision: str = "float32"
    log_every: int = 50
    evaluate_every: int = 1_000
    evaluate_sentences: int = 300
    save_every: int = 500
    snapshots: tuple[int, ...] = field(default=())
    start_from: str = ""

    def __post_init__(self) -> None:
        if self.task not in TASKS:
            raise ValueError(f"task is {self.task!r}; choose one of {', '.join(TASKS)}")
        if self.schedule not in ("paper", "cosine"):
            raise ValueError(f"schedule is {self.schedule!r}; choose paper or cosine")
        if self.precision not in ("float32", "bfloat16"):
            raise ValueError(f"precision is {self.precision!r}; choose float32 or bfloat16")
        for name in ("steps", "batch_tokens", "max_sequence_length", "warmup_steps", "log_every", "save_every"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}; it must be at least 1")
        if not 0.0 <= self.average_decay < 1.0:
            raise ValueError(f"average_decay is {self.average_decay}; it must be at least 0 and below 1")
        object.__setattr__(self, "snapshots", tuple(self.snapshots))


def load_recipe(path: str | Path) -> Recipe:
    """Read a recipe. Raises ``ValueError`` that names the file and what is wrong in it."""
    path = Path(path)
    try:
        values: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ValueError(f"there is no recipe {path}; the shipped ones are in configs/") from None
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"{path} is not valid TOML: {error}") from error
    known = {field.name for field in fields(Recipe)}
    if unknown := sorted(set(values) - known):
        raise ValueError(f"{path} has unknown entries {unknown}; known are {sorted(known)}")
    try:
        values["model"] = ModelConfig(**values.get("model", {}))
        return Recipe(**values)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{path}: {error}") from error
