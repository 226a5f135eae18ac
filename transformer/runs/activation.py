"""One recorded tensor together with the names of its axes."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import DTypeLike


@dataclass(frozen=True)
class Activation:
    """Values of a tensor in the forward pass, with one name per axis (there is no batch axis).

    >>> Activation("encoder.embedding.sum", ("position", "model"), np.zeros((3, 4))).shape
    (3, 4)

    Raises:
        ValueError: If the number of axes differs from the number of dimensions.
    """

    name: str
    axes: tuple[str, ...]
    values: np.ndarray

    def __post_init__(self) -> None:
        if self.values.ndim != len(self.axes):
            raise ValueError(
                f"activation {self.name!r} declares {len(self.axes)} axes {self.axes} but its values have "
                f"{self.values.ndim} dimensions {self.values.shape}; declare one name per dimension"
            )

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the values."""
        return self.values.shape

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.values, dtype=dtype, copy=copy)
