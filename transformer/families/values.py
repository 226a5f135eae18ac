"""Checked access to the fields of a third-party ``config.json``; errors name the field and its value."""

from collections.abc import Mapping
from math import isfinite

from transformer.errors import CheckpointError

ACTIVATIONS = {
    "gelu": "gelu",
    "gelu_new": "gelu_new",
    "gelu_pytorch_tanh": "gelu_tanh",
    "gelu_fast": "gelu_new",
    "relu": "relu",
    "silu": "silu",
    "swish": "silu",
    "quick_gelu": "quick_gelu",
    "tanh": "tanh",
}
LONGEST = 8192  # positions, even if the model could read more


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
            raise CheckpointError(f"config.json says {name} {value!r}; it must be an integer from {least} to {most}")
        return value

    def number(self, *names: str, default: float | None = None) -> float:
        """Return a number above 0."""
        name, value = self._first(names, default)
        if not isinstance(value, (int, float)) or isinstance(value, bool) or not isfinite(value) or value <= 0:
            raise CheckpointError(f"config.json says {name} {value!r}; it must be a number above 0")
        return float(value)

    def numbers(self, name: str, *, count: int) -> tuple[float, ...]:
        """Return a list of ``count`` numbers above 0."""
        found = self.get(name)
        if not isinstance(found, list) or len(found) != count:
            raise CheckpointError(f"config.json says {name} {repr(found)[:80]}; it must be a list of {count} numbers")
        return tuple(Values({name: value}).number(name) for value in found)

    def flag(self, name: str, *, default: bool) -> bool:
        """Return a field that is true or false."""
        value = self.get(name, default)
        if not isinstance(value, bool):
            raise CheckpointError(f"config.json says {name} {value!r}; it must be true or false")
        return value

    def activation(self, *names: str, default: str) -> str:
        """Return the name of an activation function that we have; others are a ``CheckpointError``."""
        name, value = self._first(names, default)
        if not isinstance(value, str) or value not in ACTIVATIONS:
            raise CheckpointError(
                f"config.json says {name} {repr(value)[:80]}; known activation functions are {', '.join(ACTIVATIONS)}"
            )
        return ACTIVATIONS[value]

    def length(self, *names: str, default: int | None = None, offset: int = 0) -> int:
        """Return the number of positions without ``offset`` unused rows, at most ``LONGEST``."""
        return min(LONGEST, self.integer(*names, default=default, least=1 + offset, most=2**27) - offset)

    def only(self, name: str, *allowed: object) -> None:
        """Raise ``CheckpointError`` for a value that is not in ``allowed``; the field may be absent."""
        if (value := self.fields.get(name)) is not None and value not in allowed:
            raise CheckpointError(
                f"config.json says {name} {value!r}; of this family only {', '.join(map(repr, allowed))} can be read"
            )

    def mapping(self, name: str) -> Mapping[str, object]:
        """Return a field that is an object, {} if it is absent."""
        value = self.get(name, {})
        if not isinstance(value, dict):
            raise CheckpointError(f"config.json says {name} {repr(value)[:80]}; it must be an object")
        return value

    def _first(self, names: tuple[str, ...], default: object) -> tuple[str, object]:
        for name in names:
            if (value := self.fields.get(name)) is not None:
                return name, value
        if default is None:
            raise CheckpointError(f"config.json lacks {' / '.join(names)}")
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
        raise CheckpointError("config.json names 1 label: a model that predicts one number is not a classifier")
    if of_images:
        names = tuple(name if names.count(name) == 1 else f"{name} ({at})" for at, name in enumerate(names))
    if len(set(names)) < len(names):
        raise CheckpointError(f"class_names is {names}; the names must be different")
    return names
