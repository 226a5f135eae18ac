"""Similarity of heads, by all measures that they share, or by their maps of one sentence."""

from collections.abc import Mapping, Sequence

import numpy as np

from transformer.runs.attention_view import AttentionView

Measures = Mapping[str, float]


def most_alike(heads: Sequence[Measures], index: int, *, most: int = 3) -> tuple[int, ...]:
    """Return the indices of the heads nearest to ``heads[index]``, nearest first.

    The distance is Euclidean over the measures that are finite for every head, each divided by its standard deviation
    over the heads; a measure that is the same for all heads is ignored. The result is empty if no measure is left.
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


def most_alike_maps(
    views: Sequence[AttentionView], layer: int, head: int, *, most: int = 3
) -> tuple[tuple[int, int, float], ...]:
    """Return (layer, head, share) of the heads whose maps are nearest to this one's, nearest first.

    The share, from 0 to 1, is the weight that both put on the same keys, Σ min(a, b): 1 minus the total variation
    distance, averaged over the rows with at least two allowed keys. The result is empty if there is no such row.

    ``views`` are of one kind of attention, one per layer.
    """
    own = next(view for view in views if view.layer == layer)
    rows = own.allowed.sum(axis=1) > 1
    if not rows.any():
        return ()
    mine = own.weights[head][rows]
    found = [
        (view.layer, other, float(share))
        for view in views
        for other, share in enumerate(np.minimum(view.weights[:, rows], mine).sum(axis=-1).mean(axis=-1))
        if (view.layer, other) != (layer, head)
    ]
    return tuple(sorted(found, key=lambda one: -one[2])[:most])
