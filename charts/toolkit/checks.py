"""What an array or a table must look like before it is drawn; errors name the value and what would be right."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import pandas as pd

_ROUNDING = 1e-4  # float32 sums of probabilities may leave 0…1 by this much


def as_array(
    values: Any, *, name: str, axes: Sequence[str], sizes: Mapping[str, int] | None = None, signed: bool = True
) -> np.ndarray:
    """``values`` as a float32 array with one dimension per name in ``axes``.

    ``sizes`` says how long an axis must be where that is known (``{"token": 5}``). ``signed=False`` refuses
    negative values. Raises ``ValueError``.
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
    """As ``as_array``, and every value must lie in 0…1 (NaN is let through: nothing is drawn there)."""
    array = as_array(values, name=name, axes=axes, sizes=sizes)
    outside = array[(array < -_ROUNDING) | (array > 1 + _ROUNDING)]
    if outside.size:
        raise ValueError(f"{name} holds {float(outside[0]):.6g}; a weight or probability lies between 0 and 1")
    return array


def require_columns(frame: pd.DataFrame, *, name: str, columns: Sequence[str]) -> None:
    """Raises ``ValueError`` when a column is missing or there is no row."""
    missing = [column for column in columns if column not in frame.columns]
    if missing:
        raise ValueError(f"{name} lacks the columns {missing}; it has {list(map(str, frame.columns))}")
    if not len(frame):
        raise ValueError(f"{name} has 0 rows, so there is nothing to draw; give at least one")


def require_index(index: int, *, name: str, size: int) -> int:
    """Raises ``ValueError`` when there is no such head, row, unit …; returns the index."""
    if not 0 <= index < size:
        raise ValueError(f"{name} is {index}, but there are only {size}; choose 0 to {size - 1}")
    return int(index)


def require_same_length(name: str, values: Sequence, *, expected: int, of: str) -> None:
    """Raises ``ValueError`` when there are not as many ``values`` as ``of`` says."""
    if len(values) != expected:
        raise ValueError(f"{name} has {len(values)} entries, but there are {expected} {of}; give one for each")
