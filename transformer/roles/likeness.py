"""Which heads do the same as this one? Distances between heads by all measures that they share."""

from collections.abc import Mapping, Sequence

import numpy as np

Measures = Mapping[str, float]


def most_alike(heads: Sequence[Measures], index: int, *, most: int = 3) -> tuple[int, ...]:
    """The indices of the heads nearest to ``heads[index]``, the nearest first.

    Distance: Euclidean over the measures that every head has a finite number for, each divided by its standard
    deviation over the heads; a measure that is the same for all of them tells nothing. Empty where no measure is left.
    """
    names = [name for name in heads[index] if all(np.isfinite(head.get(name, np.nan)) for head in heads)]
    values = np.array([[head[name] for name in names] for head in heads], dtype=np.float64).reshape(len(heads), -1)
    spread = values.std(axis=0)
    values = values[:, spread > 1e-9] / spread[spread > 1e-9]
    if not values.shape[1]:
        return ()
    distances = np.linalg.norm(values - values[index], axis=1)
    order = [int(other) for other in np.argsort(distances, kind="stable") if other != index]
    return tuple(order[:most])
