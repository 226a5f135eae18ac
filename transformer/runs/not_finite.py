"""The first number of a forward pass that is not finite."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from transformer.errors import NotFiniteError
from transformer.runs.activation import Activation
from transformer.text.tokens import TokenSequence

_POSITION_AXES = ("position", "query")


@dataclass(frozen=True)
class NotFinite:
    """The first activation of a pass that holds NaN or an infinity.

    Attributes:
        kind: "NaN", "+∞" or "−∞".
        position: Row of its first such value; ``None`` if the activation has no rows.
    """

    name: str
    kind: str
    position: int | None

    @property
    def stack(self) -> str:
        """Stack whose tokens ``position`` counts; keys and values of cross-attention are the encoder's."""
        of_memory = ".cross_attention." in self.name and self.name.endswith((".key", ".value"))
        return "encoder" if of_memory else self.name.split(".")[0]


def first_not_finite(activations: Mapping[str, Activation]) -> NotFinite | None:
    """Return the first activation, in the order of the pass, that is not finite; ``None`` if all are.

    Scores that the mask hides do not count: no weight is computed from them.
    """
    if getattr(activations, "is_finite", False):  # of ``Recorded``; nearly always true, which saves 600 calls
        return None
    for name, activation in activations.items():
        values = activation.values
        if values.dtype.kind != "f" or _has_finite_sum(values):
            continue
        wrong = ~np.isfinite(values)
        hidden = name.removesuffix(".scores") + ".allowed"
        if name.endswith(".scores") and hidden in activations:
            wrong &= activations[hidden].values
        if wrong.any():
            return _describe(activation, wrong)
    return None


def _has_finite_sum(values: np.ndarray) -> bool:
    """Return whether the sum is finite, which implies that every value is.

    A sum of finite values may overflow, so ``False`` implies nothing.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(values.sum()))


def _describe(activation: Activation, wrong: np.ndarray) -> NotFinite:
    axis = next((axis for axis, name in enumerate(activation.axes) if name in _POSITION_AXES), None)
    places = np.argwhere(wrong)
    place = places[0] if axis is None else places[places[:, axis].argmin()]
    value = activation.values[tuple(place)]
    kind = "NaN" if np.isnan(value) else "+∞" if value > 0 else "−∞"
    return NotFinite(activation.name, kind, None if axis is None else int(place[axis]))


def not_finite_error(found: NotFinite, tokens: TokenSequence | None, *, edited: bool) -> NotFiniteError:
    """Return the error that names ``found``, with the tokens of its stack."""
    if found.position is None or tokens is None:
        place = f"{found.name} is {found.kind}"
    else:
        place = f"{found.name} is {found.kind} at position {found.position} ({tokens.displays[found.position]})"
    if edited:
        return NotFiniteError(
            f"With these edits, {place}. This is the first activation of the forward pass that is not finite. "
            "No number computed after it means anything: undo or weaken an edit."
        )
    return NotFiniteError(
        f"{place}. This is the first activation of the forward pass that is not finite. No number "
        "computed after it means anything: the weights of this model are too large or damaged."
    )
