"""Requirements on arrays and tables before drawing; errors state the value and what is valid."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import pandas as pd

    from transformer.text.tokens import TokenSequence

_ROUNDING = 1e-4  # float32 sums of probabilities may be outside 0…1 by this much


def as_array(
    values: Any, *, name: str, axes: Sequence[str], sizes: Mapping[str, int] | None = None, signed: bool = True
) -> np.ndarray:
    """Return ``values`` as a float32 array with one dimension per name in ``axes``.

    Args:
        values: The values.
        name: Their name in errors.
        axes: Names of the axes.
        sizes: Required lengths of axes (``{"token": 5}``).
        signed: Whether negative values are valid.

    Raises:
        ValueError: If the values do not fit.
    """
    array = np.asarray(values, dtype=np.float32)
    sizes = sizes or {}
    wanted = "[" + ", ".join(f"{sizes[axis]} × {axis}" if axis in sizes else axis for axis in axes) + "]"
    fits = array.ndim == len(axes) and all(
        sizes.get(axis, length) == length for axis, length in zip(axes, array.shape, strict=True)
    )
    if not fits:
        raise ValueError(f"{name} has shape {array.shape}; it must be {wanted}")
    if array.size == 0:
        raise ValueError(f"{name} has shape {array.shape}, so there is nothing to draw; it must be {wanted}")
    if not signed and (array < 0).any():
        raise ValueError(f"{name} holds {float(np.nanmin(array)):.6g}; it cannot be less than 0")
    return array


def as_probabilities(
    values: Any, *, name: str, axes: Sequence[str], sizes: Mapping[str, int] | None = None
) -> np.ndarray:
    """Return ``as_array`` with every value checked to be from 0 to 1, or NaN (drawn as empty)."""
    array = as_array(values, name=name, axes=axes, sizes=sizes)
    outside = array[(array < -_ROUNDING) | (array > 1 + _ROUNDING)]
    if outside.size:
        raise ValueError(f"{name} holds {float(outside[0]):.6g}; a weight or probability lies between 0 and 1")
    return array


def require_columns(frame: pd.DataFrame, *, name: str, columns: Sequence[str]) -> None:
    """Check that no column is missing and there is at least one row.

    Raises:
        ValueError: If this does not hold.
    """
    missing = [column for column in columns if column not in frame.columns]
    if missing:
        raise ValueError(f"{name} lacks the columns {missing}; it has {list(map(str, frame.columns))}")
    if not len(frame):
        raise ValueError(f"{name} has 0 rows, so there is nothing to draw; give at least one")


def require_index(index: int, *, name: str, size: int) -> int:
    """Check that a head, row, unit … exists, and return the index.

    Raises:
        ValueError: If it does not.
    """
    if not 0 <= index < size:
        raise ValueError(f"{name} is {index}, but there are only {size}; choose 0 to {size - 1}")
    return int(index)


def require_ids(tokens: TokenSequence, *, size: int) -> None:
    """Check that every token is in a vocabulary of this ``size``.

    Raises:
        ValueError: If one is not.
    """
    for token in tokens:
        require_index(token.id, name=f"the id of token {token.display!r}", size=size)


def require_same_length(name: str, values: Sequence, *, expected: int, of: str) -> None:
    """Check that there are as many ``values`` as ``of`` requires.

    Raises:
        ValueError: If this does not hold.
    """
    if len(values) != expected:
        raise ValueError(f"{name} has {len(values)} entries, but there are {expected} {of}; give one for each")
