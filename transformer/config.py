"""The configuration of a model: a frozen dataclass that is validated once, when it is made."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from pathlib import Path

KINDS = ("encoder-decoder", "decoder-only", "encoder-only")
POSITIONS = ("sinusoidal", "learned", "rotary", "relative", "none")
NORMS = ("pre", "post")
ACTIVATIONS = ("relu", "gelu")


@dataclass(frozen=True)
class ModelConfig:
    """Everything that fixes the shapes and the arithmetic of a model.

    ``d_model`` is the width of the residual stream, ``d_ff`` the hidden width of the feed-forward layer
    (Vaswani et al. 2017, Table 3). ``norm`` is "post" (the 2017 paper) or "pre" (Xiong et al. 2020).
    ``positions`` is one of sinusoidal (Vaswani et al. 2017, §3.5), learned (Gehring et al. 2017), rotary (Su et al.
    2021), relative (T5 bias, Raffel et al. 2020, §2.1) or none. ``class_names`` add a classifier head to
    an encoder-only model. ``tie_embeddings`` shares one matrix between all embeddings and the projection
    to the vocabulary (Press & Wolf 2017).

    Raises ``ValueError`` that names the field, its value and what would be right.
    """

    kind: str = "encoder-decoder"
    vocabulary_size: int = 6000
    d_model: int = 192
    n_heads: int = 6
    d_ff: int = 768
    n_encoder_layers: int = 3
    n_decoder_layers: int = 3
    max_length: int = 256
    positions: str = "sinusoidal"
    norm: str = "pre"
    activation: str = "relu"
    dropout: float = 0.1
    layer_norm_epsilon: float = 1e-5
    tie_embeddings: bool = True
    class_names: tuple[str, ...] = ()
    pad_id: int = 0

    def __post_init__(self) -> None:
        self._check_choice("kind", KINDS)
        self._check_choice("positions", POSITIONS)
        self._check_choice("norm", NORMS)
        self._check_choice("activation", ACTIVATIONS)
        for name in ("vocabulary_size", "d_model", "n_heads", "d_ff"):
            self._check_integer(name, at_least=1)
        # What no tensor in a file bears out has a limit, or a config could ask for all memory there is.
        self._check_integer("max_length", at_least=1, at_most=65_536)
        self._check_integer("n_encoder_layers", at_least=0, at_most=256)
        self._check_integer("n_decoder_layers", at_least=0, at_most=256)
        self._check_integer("pad_id", at_least=0)
        for name in ("dropout", "layer_norm_epsilon"):
            if not isinstance(getattr(self, name), (int, float)):
                raise ValueError(f"{name} is {getattr(self, name)!r}; it must be a number")
        if not isinstance(self.tie_embeddings, bool):
            raise ValueError(f"tie_embeddings is {self.tie_embeddings!r}; it must be true or false")
        if self.d_model % self.n_heads:
            raise ValueError(
                f"d_model is {self.d_model}, which {self.n_heads} heads do not divide; "
                f"choose n_heads so that d_model / n_heads is a whole number"
            )
        if self.positions == "rotary" and self.d_head % 2:
            raise ValueError(f"rotary positions turn pairs of channels, but d_head is {self.d_head}; make it even")
        if self.positions == "sinusoidal" and self.d_model % 2:
            raise ValueError(f"sinusoidal positions use pairs of channels, but d_model is {self.d_model}; make it even")
        if not 0.0 <= self.dropout < 1.0:
            raise ValueError(f"dropout is {self.dropout!r}; it is a probability, at least 0 and below 1")
        if not 0.0 < self.layer_norm_epsilon < 1.0:
            raise ValueError(f"layer_norm_epsilon is {self.layer_norm_epsilon!r}; it must lie between 0 and 1")
        if self.has_encoder != (self.n_encoder_layers > 0):
            raise ValueError(f"n_encoder_layers is {self.n_encoder_layers}, which does not fit kind {self.kind!r}")
        if self.has_decoder != (self.n_decoder_layers > 0):
            raise ValueError(f"n_decoder_layers is {self.n_decoder_layers}, which does not fit kind {self.kind!r}")
        names = self.class_names
        if not isinstance(names, (list, tuple)) or not all(isinstance(name, str) for name in names):
            raise ValueError(f"class_names is {names!r}; it must be a list of names")
        object.__setattr__(self, "class_names", tuple(names))  # JSON knows only lists
        if self.class_names and self.kind != "encoder-only":
            raise ValueError(f"class_names is {self.class_names}, but only an encoder-only model has a classifier head")
        if len(self.class_names) == 1:
            raise ValueError(f"class_names is {self.class_names}; a classifier needs at least 2 classes")
        if len(set(self.class_names)) < len(self.class_names):
            raise ValueError(f"class_names is {self.class_names}; the names must be different")
        if self.pad_id >= self.vocabulary_size:
            raise ValueError(f"pad_id is {self.pad_id}, but the vocabulary ends at {self.vocabulary_size - 1}")

    def _check_choice(self, name: str, choices: tuple[str, ...]) -> None:
        if getattr(self, name) not in choices:
            raise ValueError(f"{name} is {getattr(self, name)!r}; choose one of {', '.join(choices)}")

    def _check_integer(self, name: str, *, at_least: int, at_most: int | None = None) -> None:
        value = getattr(self, name)
        if not isinstance(value, int) or isinstance(value, bool) or value < at_least:
            raise ValueError(f"{name} is {value!r}; it must be a whole number of at least {at_least}")
        if at_most is not None and value > at_most:
            raise ValueError(f"{name} is {value}; it must be at most {at_most}")

    @property
    def d_head(self) -> int:
        """Width of one head, d_k = d_v = d_model / n_heads (Vaswani et al. 2017, §3.2.2)."""
        return self.d_model // self.n_heads

    @property
    def n_classes(self) -> int:
        """Number of classes of the classifier head, 0 where there is none."""
        return len(self.class_names)

    @property
    def has_encoder(self) -> bool:
        return self.kind in ("encoder-decoder", "encoder-only")

    @property
    def has_decoder(self) -> bool:
        return self.kind in ("encoder-decoder", "decoder-only")

    def to_json(self) -> str:
        return json.dumps(asdict(self), indent=2) + "\n"

    @classmethod
    def from_dict(cls, values: dict) -> ModelConfig:
        """Every field must be given: a missing one is an error, never a silent default."""
        known = {field.name for field in fields(cls)}
        if unknown := sorted(set(values) - known):
            raise ValueError(f"config has unknown fields {unknown}; known are {sorted(known)}")
        if missing := sorted(known - set(values)):
            raise ValueError(f"config lacks the fields {missing}; a checkpoint must state all of them")
        return cls(**values)

    @classmethod
    def from_json(cls, path: Path) -> ModelConfig:
        """Read a file. Raises ``ValueError`` that names the file and what is wrong in it."""
        try:
            values = json.loads(Path(path).read_text(encoding="utf-8"))
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{path} is not valid JSON: {error}") from error
        if not isinstance(values, dict):
            raise ValueError(f"{path} must hold a JSON object, not {type(values).__name__}")
        try:
            return cls.from_dict(values)
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from error
