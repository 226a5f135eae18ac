"""Which heads read which? Composition scores between a head and all heads before it (Elhage et al. 2021).

Q-composition: the query of the later head reads what the earlier one wrote; K- and V-composition: its keys, its values.
Each is ‖product‖ / (‖one‖ ‖other‖) in the Frobenius norm, of W_QK = W_Qᵀ W_K or W_OV = W_O W_V: 0 where the later head
cannot read what the earlier one writes. Two random heads come to about 1/√d_model.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from transformer.heads.head_circuits import HeadMatrices, head_matrices
from transformer.models import Model
from transformer.runs.head_places import Head, all_heads

WAYS = ("query", "key", "value")


@dataclass(frozen=True)
class Composition:
    """``scores`` [later head, earlier head], 0…1; NaN where the one does not come before the other, or writes to a
    stack that the other does not read. ``random``: what two random heads come to."""

    way: str
    later: tuple[Head, ...]
    earlier: tuple[Head, ...]
    scores: np.ndarray
    random: float


def composition(model: Model, stack: str, *, way: str) -> Composition:
    """All heads of ``stack`` with all heads that write what they read.

    ``way``: "query", "key" or "value". Keys and values of cross-attention read the encoder, so that the encoder's heads
    come before it. The σ of norms and everything that is not linear is left out.
    """
    if way not in WAYS:
        raise ValueError(f"way is {way!r}; choose one of {', '.join(WAYS)}")
    heads = all_heads(model.config)
    later = tuple(head for head in heads if head.stack == stack)
    earlier = tuple(head for head in heads if any(_reads(one, head, way) for one in later))
    matrices = {
        place: head_matrices(model, place.stack, place.kind, layer=place.layer, head=place.head)
        for place in {*later, *earlier}
    }
    if not earlier:  # one layer alone
        return Composition(way, later, (), np.empty((len(later), 0)), model.config.d_model**-0.5)
    outputs = torch.stack([matrices[place].output for place in earlier])  # [earlier head, model, channel]
    values = torch.stack([matrices[place].value @ matrices[place].value.T for place in earlier])
    sizes = [
        _norm(matrices[place].output.T @ matrices[place].output, its)
        for place, its in zip(earlier, values, strict=True)
    ]
    scores = np.full((len(later), len(earlier)), np.nan)
    for row, place in enumerate(later):
        known = [column for column, before in enumerate(earlier) if _reads(place, before, way)]
        reader, other, size = _reader(matrices[place], way)
        between = reader @ outputs[known]  # [earlier head, channel, channel]: what is read of what was written
        products = ((other @ between) * (between @ values[known])).sum(dim=(1, 2)).clamp(min=0).sqrt()
        for column, product in zip(known, products.tolist(), strict=True):
            scores[row, column] = product / (size * sizes[column]) if size * sizes[column] else 0.0
    return Composition(way, later, earlier, scores, model.config.d_model**-0.5)


def _reads(later: Head, earlier: Head, way: str) -> bool:
    """Whether the later head reads, in this way, what the earlier one wrote."""
    if later.kind == "cross" and way != "query":
        return earlier.stack == "encoder"
    if later.stack != earlier.stack:
        return False
    order = ("self", "cross")
    return (earlier.layer, order.index(earlier.kind)) < (later.layer, order.index(later.kind))


def _reader(matrices: HeadMatrices, way: str) -> tuple[Tensor, Tensor, float]:
    """Of a later head: the matrix [channel, model] that reads, P Pᵀ of the one behind it, and the size of both."""
    reader, behind = {
        "query": (matrices.query, matrices.key),
        "key": (matrices.key, matrices.query),
        "value": (matrices.value, matrices.output.T),
    }[way]
    other = behind @ behind.T
    return reader, other, _norm(reader @ reader.T, other)


def _norm(first: Tensor, second: Tensor) -> float:
    """‖Aᵀ B‖ from A Aᵀ and B Bᵀ, both [channel, channel]."""
    return float(torch.trace(first @ second).clamp(min=0).sqrt())
