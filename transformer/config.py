"""Configuration of a model: a frozen dataclass, validated once when it is created."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, ClassVar

from transformer.errors import MessageError

SPECIAL_TOKENS = ("<pad>", "<s>", "</s>", "<mask>")  # ids 0 to 3 in the vocabularies of our own models
KINDS = ("encoder-decoder", "decoder-only", "encoder-only")
POSITIONS = ("sinusoidal", "learned", "rotary", "relative", "none")
NORMS = ("pre", "post")
ACTIVATIONS = ("relu", "gelu")
LEVELS = "0123456789abcdefghijklmnopqrstuvwxyz"  # symbols for shades of grey, from 0 (lowest)
# limit on the number of possible patches, since each is an entry of the vocabulary and pages list them all
MAX_PATCHES = 1_000_000
# Fields that older checkpoints lack. A missing field means "off", and a field that is off is not written.
_MAY_BE_MISSING = frozenset(("rms_norm", "task_prefixes", "n_segments"))
NEXT_SENTENCE = ("IsNext", "NotNext")  # the classes of the next-sentence head, in this order


@dataclass(frozen=True)
class ModelConfig:
    """All that determines the shapes and the arithmetic of a model.

    Attributes:
        kind: "encoder-decoder", "decoder-only" or "encoder-only".
        vocabulary_size: Number of tokens in the vocabulary.
        d_model: Width of the residual stream (Vaswani et al. 2017, Table 3).
        n_heads: Number of attention heads per layer.
        d_ff: Number of hidden units of the feed-forward layer (Vaswani et al. 2017, Table 3).
        n_encoder_layers: Number of encoder layers; 0 for a decoder-only model.
        n_decoder_layers: Number of decoder layers; 0 for an encoder-only model.
        max_length: Largest number of tokens in a sequence.
        positions: "sinusoidal" (Vaswani et al. 2017, §3.5), "learned" (Gehring et al. 2017), "rotary" (Su et al. 2021,
            in self-attention), "relative" (T5's bias, Raffel et al. 2020, §2.1) or "none".
        norm: "post" (Vaswani et al. 2017) or "pre" (Xiong et al. 2020).
        activation: Activation of the feed-forward layer, "relu" or "gelu".
        dropout: Probability of dropping a number in training.
        layer_norm_epsilon: ε under the square root of the normalisation.
        tie_embeddings: Share one matrix between all embeddings and the projection to the vocabulary (Press & Wolf
            2017).
        class_names: Classes of the classifier head; only for an encoder-only model.
        pad_id: Token id of padding.
        rms_norm: Use RMSNorm (Zhang & Sennrich 2019) instead of LayerNorm.
        task_prefixes: Texts that sentences began with in training, one per task (Raffel et al. 2020, §2.4).
        n_segments: Number of segment embeddings of an encoder-only model (Devlin et al. 2019, §3): 2 if it reads pairs
            of sentences, 0 if it has none. With them, a masked-token model also has a next-sentence head.

    Raises:
        ValueError: If a field is invalid; the message names the field, its value and what would be valid.
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
    rms_norm: bool = False
    task_prefixes: tuple[str, ...] = ()
    n_segments: int = 0

    def __post_init__(self) -> None:
        self._check_choice("kind", KINDS)
        self._check_choice("positions", POSITIONS)
        self._check_choice("norm", NORMS)
        self._check_choice("activation", ACTIVATIONS)
        for name in ("vocabulary_size", "d_model", "n_heads", "d_ff"):
            self._check_integer(name, at_least=1)
        # These fields have limits because no tensor in a file confirms them: a config could ask for any amount of
        # memory.
        self._check_integer("max_length", at_least=1, at_most=65_536)
        self._check_integer("n_encoder_layers", at_least=0, at_most=256)
        self._check_integer("n_decoder_layers", at_least=0, at_most=256)
        self._check_integer("n_segments", at_least=0, at_most=2)
        self._check_integer("pad_id", at_least=0)
        for name in ("dropout", "layer_norm_epsilon"):
            if not isinstance(getattr(self, name), (int, float)):
                raise MessageError(f"{name} is {getattr(self, name)!r}; it must be a number")
        for name in ("tie_embeddings", "rms_norm"):
            if not isinstance(value := getattr(self, name), bool):
                raise MessageError(f"{name} is {value!r}; it must be true or false")
        if self.d_model % self.n_heads:
            raise MessageError(
                f"d_model is {self.d_model}, which is not divisible by {self.n_heads} heads; choose n_heads so "
                "that d_model / n_heads is an integer"
            )
        if self.positions == "rotary" and self.d_head % 2:
            raise MessageError(f"rotary positions rotate pairs of channels, but d_head is {self.d_head}; make it even")
        if self.positions == "sinusoidal" and self.d_model % 2:
            raise MessageError(
                f"sinusoidal positions use pairs of channels, but d_model is {self.d_model}; make it even"
            )
        if not 0.0 <= self.dropout < 1.0:
            raise MessageError(f"dropout is {self.dropout!r}; it is a probability, at least 0 and below 1")
        if not 0.0 < self.layer_norm_epsilon < 1.0:
            raise MessageError(f"layer_norm_epsilon is {self.layer_norm_epsilon!r}; it must lie between 0 and 1")
        if self.has_encoder != (self.n_encoder_layers > 0):
            raise MessageError(f"n_encoder_layers is {self.n_encoder_layers}, which does not fit kind {self.kind!r}")
        if self.has_decoder != (self.n_decoder_layers > 0):
            raise MessageError(f"n_decoder_layers is {self.n_decoder_layers}, which does not fit kind {self.kind!r}")
        prefixes = self.task_prefixes
        if not isinstance(prefixes, (list, tuple)) or not all(isinstance(p, str) and p.strip() for p in prefixes):
            raise MessageError(f"task_prefixes is {prefixes!r}; it must be a list of strings")
        object.__setattr__(self, "task_prefixes", tuple(prefixes))  # JSON has lists but no tuples
        names = self.class_names
        if not isinstance(names, (list, tuple)) or not all(isinstance(name, str) for name in names):
            raise MessageError(f"class_names is {names!r}; it must be a list of names")
        object.__setattr__(self, "class_names", tuple(names))
        if self.class_names and self.kind != "encoder-only":
            raise MessageError(
                f"class_names is {self.class_names}, but only an encoder-only model has a classifier head"
            )
        if self.n_segments and self.kind != "encoder-only":
            raise MessageError(
                f"n_segments is {self.n_segments}, but only an encoder-only model has segment embeddings"
            )
        if len(self.class_names) == 1:
            raise MessageError(f"class_names is {self.class_names}; a classifier needs at least 2 classes")
        if len(set(self.class_names)) < len(self.class_names):
            raise MessageError(f"class_names is {self.class_names}; the names must be different")
        if self.pad_id >= self.vocabulary_size:
            raise MessageError(f"pad_id is {self.pad_id}, but the vocabulary ends at {self.vocabulary_size - 1}")

    def _check_choice(self, name: str, choices: tuple[str, ...]) -> None:
        if getattr(self, name) not in choices:
            raise MessageError(f"{name} is {getattr(self, name)!r}; choose one of {', '.join(choices)}")

    def _check_integer(self, name: str, *, at_least: int, at_most: int | None = None) -> None:
        value = getattr(self, name)
        if not isinstance(value, int) or isinstance(value, bool) or value < at_least:
            raise MessageError(f"{name} is {value!r}; it must be an integer ≥ {at_least}")
        if at_most is not None and value > at_most:
            raise MessageError(f"{name} is {value}; it must be at most {at_most}")

    @property
    def d_head(self) -> int:
        """Width of one head: d_k = d_v = d_model / n_heads (Vaswani et al. 2017, §3.2.2)."""
        return self.d_model // self.n_heads

    @property
    def switch_lengths(self) -> frozenset[int]:
        """Lengths beyond which even the first tokens are encoded differently, so a cache is invalid."""
        return frozenset()

    def positions_in(self, stack: str) -> str:
        """Return how a stack encodes positions, one of ``POSITIONS`` or a kind that only other families have."""
        return self.positions

    def kinds_in(self, stack: str) -> tuple[str, ...]:
        """Return all kinds of positions of a stack: a third-party model may have several."""
        return () if self.positions == "none" else (self.positions,)

    def heads_in(self, stack: str) -> int:
        """Return the number of heads in each attention layer of a stack."""
        return self.n_heads

    @property
    def n_classes(self) -> int:
        """Number of classes of the classifier head; 0 if there is none."""
        return len(self.class_names)

    @property
    def predicts_next_sentence(self) -> bool:
        """Whether a masked-token model also has a next-sentence head."""
        return self.n_segments > 1 and not self.n_classes

    @property
    def encodes_sentences(self) -> bool:
        """Whether the output is a sentence vector: an encoder without a head, which none of our own models is."""
        return False

    @property
    def fills_blanks(self) -> bool:
        """Whether the output is a prediction of masked tokens."""
        return self.kind == "encoder-only" and not (self.n_classes or self.encodes_sentences)

    @property
    def reads_images(self) -> bool:
        """Whether the tokens are patches of an image."""
        return False

    @property
    def has_encoder(self) -> bool:
        """Whether the model has an encoder."""
        return self.kind in ("encoder-decoder", "encoder-only")

    @property
    def has_decoder(self) -> bool:
        """Whether the model has a decoder."""
        return self.kind in ("encoder-decoder", "decoder-only")

    def to_json(self) -> str:
        """Return the configuration as the text of ``config.json``."""
        values = {name: value for name, value in asdict(self).items() if value or name not in _MAY_BE_MISSING}
        return json.dumps(values, indent=2) + "\n"

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> ModelConfig:
        """Create a configuration from the values of ``config.json``.

        Every field must be given, except those of ``_MAY_BE_MISSING``: a missing field is an error, never a silent
        default.

        Args:
            values: One value per field; with ``patch_size`` among them, the result is a ``PictureConfig``.

        Raises:
            ValueError: If a field is unknown, missing or invalid.
        """
        cls = config_class(values)
        known = {field.name for field in fields(cls)}
        if unknown := sorted(set(values) - known):
            raise MessageError(f"config has unknown fields {unknown}; the known ones are {sorted(known)}")
        if missing := sorted(known - _MAY_BE_MISSING - set(values)):
            raise MessageError(f"config lacks the fields {missing}; a checkpoint must state all of them")
        return cls(**values)


@dataclass(frozen=True)
class PictureConfig(ModelConfig):
    """Configuration of a model that reads images (Vision Transformer, Dosovitskiy et al. 2021).

    The tokens are image patches, squares of ``patch_size`` × ``patch_size`` pixels. The number of a patch has one digit
    to the base ``n_levels`` per pixel, so the vocabulary holds the special tokens and then every possible patch. The
    model reads (picture_size / patch_size)² patches and the class token.

    Attributes:
        head_activation: Activation of the classifier's hidden layer.
        picture_size: Height and width of the image, in pixels.
        patch_size: Height and width of a patch, in pixels.
        n_levels: Number of shades of grey that a pixel can have.
    """

    head_activation: ClassVar[str] = "tanh"  # activation of the classifier's hidden layer
    kind: str = "encoder-only"
    n_decoder_layers: int = 0
    tie_embeddings: bool = False
    picture_size: int = 8
    patch_size: int = 2
    n_levels: int = 17

    @property
    def reads_images(self) -> bool:
        """Whether the tokens are patches of an image."""
        return True

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_integer("picture_size", at_least=1, at_most=256)
        self._check_integer("patch_size", at_least=1, at_most=16)
        self._check_integer("n_levels", at_least=2, at_most=len(LEVELS))
        self._check_integer("vocabulary_size", at_least=1, at_most=MAX_PATCHES)
        if self.picture_size % self.patch_size:
            raise MessageError(
                f"patch_size is {self.patch_size}, but an image of {self.picture_size} × {self.picture_size} pixels "
                "cannot be cut into such squares"
            )
        if not self.class_names:
            raise MessageError("class_names is (); an image model needs at least 2 classes")
        for name, right in (
            ("max_length", 1 + (self.picture_size // self.patch_size) ** 2),
            ("vocabulary_size", len(SPECIAL_TOKENS) + self.n_levels ** (self.patch_size**2)),
        ):
            if getattr(self, name) != right:
                raise MessageError(
                    f"{name} is {getattr(self, name)}; with patches of {self.patch_size} × {self.patch_size} pixels "
                    f"it must be {right}"
                )


def config_class(values: Mapping[str, object]) -> type[ModelConfig]:
    """Return the class that the fields of a configuration belong to."""
    return PictureConfig if "patch_size" in values else ModelConfig
