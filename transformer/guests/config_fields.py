"""Checks of the fields of a third-party ``config.json``; errors name the field and its value."""

import re
from collections.abc import Collection, Iterator, Mapping

from transformer.config import is_number
from transformer.errors import CheckpointError

LONGEST = 8192  # positions, even if the model could read more
_UNSTATED = 2048  # positions of a model whose config states no number
_SIZES = re.compile(
    r"(hidden_size|intermediate_size|vocab_size|d_model|d_ff|d_kv|n_embd|n_inner|n_layer|n_head|head_dim|n_positions"
    r"|num_(hidden_|decoder_|encoder_)?layers|num_(attention_|key_value_)?heads|max_position_embeddings"
    r"|(en|de)coder_(layers|attention_heads|ffn_dim))"
)
_NUMBERS = re.compile(r".*(_eps|_epsilon)|rope_theta|rotary_emb_base|rope_local_base_freq")
_LENGTHS = ("max_position_embeddings", "n_positions", "seq_length", "max_seq_len")
_ROTARY = ("rope_scaling", "rope_parameters")


def wrong_field(name: str, value: object, expected: str) -> CheckpointError:
    """Return the error for a field whose value cannot be used; ``guest_config`` adds the name of the file."""
    return CheckpointError(f"{name} is {repr(value)[:80]}; expected {expected}")


def check_fields(fields: Mapping[str, object], rotary_types: Collection[str]) -> None:
    """Check the fields on which sizes and positions depend; the model's own code checks lists.

    Args:
        fields: Content of a ``config.json``.
        rotary_types: Known ways of scaling rotary positions.

    Raises:
        CheckpointError: If a size is not an integer above 0, or another number is not above 0.
    """
    for name, value in fields.items():
        if _SIZES.fullmatch(name) and not isinstance(value, list | None):
            _integer(name, value)
        if _NUMBERS.fullmatch(name) and not isinstance(value, dict | None):
            _check_number(name, value)
    for name, value in _rotary_settings(fields):
        if name in ("rope_type", "type") and value not in rotary_types:
            raise wrong_field(name, value, f"one of {', '.join(sorted(rotary_types))}")
        for number in value if isinstance(value, list) else [value]:
            if isinstance(number, int | float) and not isinstance(number, bool):
                _check_number(name, number)


def _integer(name: str, value: object, *, most: int = 2**27) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= most:
        raise wrong_field(name, value, f"an integer from 1 to {most}")
    return value


def _check_number(name: str, value: object) -> None:
    if not is_number(value) or value <= 0:
        raise wrong_field(name, value, "a number above 0")


def _rotary_settings(fields: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    """Yield the settings of rotary positions: of all layers, or of each kind of layer."""
    for name in _ROTARY:
        for inner, value in _object(fields, name).items():
            yield from value.items() if isinstance(value, dict) else [(inner, value)]


def _object(fields: Mapping[str, object], name: str) -> Mapping[str, object]:
    """Return a field that is an object, {} if it is absent or null."""
    value = fields.get(name)
    if value is not None and not isinstance(value, dict):
        raise wrong_field(name, value, "an object")
    return value or {}


def length_of(fields: Mapping[str, object]) -> int:
    """Return the number of positions that a model can read, at most ``LONGEST``."""
    name = next((name for name in _LENGTHS if fields.get(name) is not None), None)
    return _UNSTATED if name is None else min(LONGEST, _integer(name, fields[name]))


def class_names(fields: Mapping[str, object], architecture: str) -> tuple[str, ...]:
    """Return the class names of a classifier of sentences or images from ``id2label``; empty for others.

    If several image classes share a name (in ImageNet, the bird and the machine are both “crane”), each name gets the
    number of its class.
    """
    of_images = "ImageClassification" in architecture
    if not of_images and "SequenceClassification" not in architecture:
        return ()
    if (problem := fields.get("problem_type")) not in (None, "single_label_classification"):  # exactly one is right
        raise wrong_field("problem_type", problem, "'single_label_classification'")
    labels = _object(fields, "id2label") or {str(number): f"LABEL_{number}" for number in (0, 1)}
    stated = fields.get("num_labels")
    n_labels = _integer("num_labels", len(labels) if stated is None else stated, most=10_000)
    names = tuple(str(labels.get(str(number), f"LABEL_{number}")) for number in range(n_labels))
    if len(names) < 2:
        raise wrong_field("id2label", labels, "at least 2 classes: a model that predicts one number is no classifier")
    if of_images:
        names = tuple(name if names.count(name) == 1 else f"{name} ({at})" for at, name in enumerate(names))
    if len(set(names)) < len(names):
        raise wrong_field("id2label", names, "names that are different")
    return names
