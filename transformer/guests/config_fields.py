"""Checked access to the fields of a third-party ``config.json``; errors name the field and its value."""

import re
from collections.abc import Collection, Iterator, Mapping

from transformer.config import is_number
from transformer.errors import CheckpointError

LONGEST = 8192  # positions, even if the model could read more
_SIZES = re.compile(
    r"(hidden_size|intermediate_size|vocab_size|d_model|d_ff|d_kv|n_embd|n_inner|n_layer|n_head|head_dim|n_positions"
    r"|num_(hidden_|decoder_|encoder_)?layers|num_(attention_|key_value_)?heads|max_position_embeddings"
    r"|(en|de)coder_(layers|attention_heads|ffn_dim))"
)
_NUMBERS = re.compile(r".*(_eps|_epsilon)|rope_theta|rotary_emb_base|rope_local_base_freq")
_ROTARY = ("rope_scaling", "rope_parameters")


def wrong_field(name: str, value: object, expected: str) -> CheckpointError:
    """Return the error for a field of a ``config.json`` whose value cannot be used."""
    return CheckpointError(f"config.json says {name} {repr(value)[:80]}; expected {expected}")


def check_fields(fields: Mapping[str, object], rotary_types: Collection[str]) -> None:
    """Check the fields on which sizes and positions of a network depend; its own code checks lists.

    Args:
        fields: Content of a ``config.json``.
        rotary_types: Known ways of scaling rotary positions.

    Raises:
        CheckpointError: A size is not an integer above 0, or another number is not one above 0.
    """
    for name, value in fields.items():
        if _SIZES.fullmatch(name) and not isinstance(value, list | None):
            Values(fields).integer(name, most=2**27)
        if _NUMBERS.fullmatch(name) and not isinstance(value, dict | None):
            Values(fields).number(name)
    for name, value in _rotary_settings(fields):
        if name in ("rope_type", "type") and value not in rotary_types:
            raise wrong_field(name, value, f"one of {', '.join(sorted(rotary_types))}")
        for number in value if isinstance(value, list) else [value]:
            if isinstance(number, int | float) and not isinstance(number, bool):
                Values({name: number}).number(name)


def _rotary_settings(fields: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    """Yield the settings of rotary positions: of all layers, or of each kind of layer."""
    for name in _ROTARY:
        for inner, value in Values(fields).mapping(name).items():
            yield from value.items() if isinstance(value, dict) else [(inner, value)]


class Values:
    """The fields of one config."""

    def __init__(self, fields: Mapping[str, object]) -> None:
        self.fields = fields

    def get(self, name: str, default: object = None) -> object:
        """Return a field, or ``default`` if it is absent or null."""
        value = self.fields.get(name)
        return default if value is None else value

    def integer(self, *names: str, default: int | None = None, least: int = 1, most: int = 2**20) -> int:
        """Return the first of the fields ``names`` that is present, an integer from ``least`` to ``most``."""
        name, value = self._first(names, default)
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            raise wrong_field(name, value, f"an integer from {least} to {most}")
        return value

    def number(self, *names: str, default: float | None = None) -> float:
        """Return a number above 0."""
        name, value = self._first(names, default)
        if not is_number(value) or value <= 0:
            raise wrong_field(name, value, "a number above 0")
        return float(value)

    def length(self, *names: str, default: int | None = None, offset: int = 0) -> int:
        """Return the number of positions without ``offset`` unused rows, at most ``LONGEST``."""
        return min(LONGEST, self.integer(*names, default=default, least=1 + offset, most=2**27) - offset)

    def only(self, name: str, *allowed: object) -> None:
        """Raise ``CheckpointError`` for a value that is not in ``allowed``; the field may be absent."""
        if (value := self.fields.get(name)) is not None and value not in allowed:
            raise wrong_field(name, value, " or ".join(map(repr, allowed)))

    def mapping(self, name: str) -> Mapping[str, object]:
        """Return a field that is an object, {} if it is absent."""
        value = self.get(name, {})
        if not isinstance(value, dict):
            raise wrong_field(name, value, "an object")
        return value

    def _first(self, names: tuple[str, ...], default: object) -> tuple[str, object]:
        for name in names:
            if (value := self.fields.get(name)) is not None:
                return name, value
        if default is None:
            raise wrong_field(" / ".join(names), None, "a value")
        return names[0], default


def class_names(values: Values) -> tuple[str, ...]:
    """Return the class names of a classifier of sentences or images from ``id2label``; empty for others.

    If image classes share a name (in ImageNet, the bird and the machine are both “crane”), their numbers are added.
    """
    architectures = values.get("architectures", [])
    named = [str(name) for name in architectures] if isinstance(architectures, list) else []
    of_images = any("ImageClassification" in name for name in named)
    if not of_images and not any("SequenceClassification" in name for name in named):
        return ()
    values.only("problem_type", "single_label_classification")  # softmax over classes: exactly one is right
    labels = values.mapping("id2label") or {str(number): f"LABEL_{number}" for number in (0, 1)}
    n_labels = values.integer("num_labels", default=len(labels), least=1, most=10_000)
    names = tuple(str(labels.get(str(number), f"LABEL_{number}")) for number in range(n_labels))
    if len(names) < 2:
        raise wrong_field("id2label", labels, "at least 2 classes: a model that predicts one number is no classifier")
    if of_images:
        names = tuple(name if names.count(name) == 1 else f"{name} ({at})" for at, name in enumerate(names))
    if len(set(names)) < len(names):
        raise wrong_field("id2label", names, "names that are different")
    return names
