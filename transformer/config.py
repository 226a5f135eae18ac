"""Configuration of a model: a frozen dataclass, validated once when it is created."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from math import inf
from sys import float_info
from typing import Any, ClassVar, TypeGuard

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
Rule = Callable[[Any], str]  # the value of a field → what it must be instead; "" if it is right


def check_fields(checked: object, rules: Mapping[str, Rule]) -> None:
    """Check the attributes of an object.

    Raises:
        MessageError: If one breaks its rule; the message names the field, its value and what would be valid.
    """
    for name, rule in rules.items():
        if wanted := rule(value := getattr(checked, name)):
            raise MessageError(f"{name} is {value!r}; {wanted}")


def one_of(options: Sequence[str]) -> Rule:
    """Return the rule for a field that names one of ``options``."""
    return lambda value: "" if value in options else f"choose one of {', '.join(options)}"


def of_type(wanted: type, name: str) -> Rule:
    """Return the rule for a field of one type, called ``name`` in the message."""
    return lambda value: "" if isinstance(value, wanted) else f"it must be {name}"


def integer(least: int, most: float = inf) -> Rule:
    """Return the rule for an integer within limits."""

    def rule(value: Any) -> str:
        if type(value) is not int or value < least:
            return f"it must be an integer ≥ {least}"
        return "" if value <= most else f"it must be at most {most}"

    return rule


def number(wanted: str, holds: Callable[[float], bool]) -> Rule:
    """Return the rule for a finite number that fulfils ``holds``; otherwise the message is ``wanted``."""

    def rule(value: Any) -> str:
        if type(value) not in (int, float):
            return "it must be a number"
        return "" if is_number(value) and holds(value) else wanted

    return rule


def is_number(value: object) -> TypeGuard[float]:
    """Return whether a value of a file is a finite number, one that a float can hold."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= float_info.max


def list_of(wanted: str, holds: Callable[[Any], bool]) -> Rule:
    """Return the rule for a list whose values all fulfil ``holds``; the message calls them ``wanted``."""
    return lambda values: (
        "" if isinstance(values, (list, tuple)) and all(map(holds, values)) else f"it must be a list of {wanted}"
    )


TRUTH = of_type(bool, "true or false")
_RULES: dict[str, Rule] = {
    "kind": one_of(KINDS),
    "positions": one_of(POSITIONS),
    "norm": one_of(NORMS),
    "activation": one_of(ACTIVATIONS),
    **dict.fromkeys(("vocabulary_size", "d_model", "n_heads", "d_ff"), integer(1)),
    # These have limits because no tensor in a file confirms them: a config could ask for any amount of memory.
    "max_length": integer(1, 65_536),
    **dict.fromkeys(("n_encoder_layers", "n_decoder_layers"), integer(0, 256)),
    "n_segments": integer(0, 2),
    "pad_id": integer(0),
    "dropout": number("it is a probability, at least 0 and below 1", lambda value: 0 <= value < 1),
    "layer_norm_epsilon": number("it must lie between 0 and 1", lambda value: 0 < value < 1),
    **dict.fromkeys(("tie_embeddings", "rms_norm"), TRUTH),
    "task_prefixes": list_of("strings", lambda prefix: isinstance(prefix, str) and bool(prefix.strip())),
    "class_names": list_of("names", lambda name: isinstance(name, str)),
}


@dataclass(frozen=True)
class ModelConfig:
    """Everything that determines the shapes and the arithmetic of a model.

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
        check_fields(self, _RULES)
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
        for stack, exists in {"encoder": self.has_encoder, "decoder": self.has_decoder}.items():
            if exists != ((count := getattr(self, f"n_{stack}_layers")) > 0):
                raise MessageError(f"n_{stack}_layers is {count}, which does not fit kind {self.kind!r}")
        for name in ("task_prefixes", "class_names"):
            object.__setattr__(self, name, tuple(getattr(self, name)))  # JSON has lists but no tuples
        for name, what in {"class_names": "a classifier head", "n_segments": "segment embeddings"}.items():
            if (value := getattr(self, name)) and self.kind != "encoder-only":
                raise MessageError(f"{name} is {value}, but only an encoder-only model has {what}")
        if len(self.class_names) == 1:
            raise MessageError(f"class_names is {self.class_names}; a classifier needs at least 2 classes")
        if len(set(self.class_names)) < len(self.class_names):
            raise MessageError(f"class_names is {self.class_names}; the names must be different")
        if self.pad_id >= self.vocabulary_size:
            raise MessageError(f"pad_id is {self.pad_id}, but the vocabulary ends at {self.vocabulary_size - 1}")

    @property
    def d_head(self) -> int:
        """Width of one head: d_k = d_v = d_model / n_heads (Vaswani et al. 2017, §3.2.2)."""
        return self.d_model // self.n_heads

    def d_head_in(self, stack: str) -> int:
        """Return the width of one head in a stack."""
        return self.d_head

    def d_ff_in(self, stack: str) -> int:
        """Return the number of hidden units of a feed-forward layer in a stack."""
        return self.d_ff

    # What only third-party models change (``transformer.guests.guest_config``).

    @property
    def is_guest(self) -> bool:
        """Whether this is a third-party model, which the code of ``transformers`` computes."""
        return False

    @property
    def family(self) -> str:
        """Hugging Face's name of the family."""
        return ""

    @property
    def block(self) -> str:
        """Order of a layer's norms and sums: "sequential", "parallel" or "sandwich"."""
        return "sequential"

    @property
    def gated(self) -> bool:
        """Whether a gate scales each hidden unit of the feed-forward layers."""
        return False

    @property
    def windows(self) -> tuple[int | None, ...]:
        """Number of positions that a query may attend to, one per layer; empty for all."""
        return ()

    @property
    def n_key_heads(self) -> int:
        """Number of heads of keys and values that several query heads share; 0 if each has its own."""
        return 0

    @property
    def n_experts(self) -> int:
        """Number of experts per feed-forward layer; 0 for layers that are not a mixture of experts."""
        return 0

    @property
    def switch_lengths(self) -> tuple[int, ...]:
        """Lengths beyond which even the first tokens are encoded differently, so a cache is invalid."""
        return ()

    def positions_in(self, stack: str) -> str:
        """Return how a stack encodes positions, one of ``POSITIONS`` or a kind that only guests have."""
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
        """Whether the tokens are patches of an image: a drawn one, or a file if the model is a guest."""
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
        limits = {"picture_size": (1, 256), "patch_size": (1, 16), "n_levels": (2, len(LEVELS))}
        limits["vocabulary_size"] = (1, MAX_PATCHES)
        check_fields(self, {name: integer(*both) for name, both in limits.items()})
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
