"""How much a token really passes on: attention weights times the length of what they weigh (Kobayashi et al. 2020)."""

import numpy as np

from transformer.attention_maps.attention_path import output_matrices
from transformer.runs.traces import Trace


def value_norms(trace: Trace, stack: str, layer: int, kind: str) -> np.ndarray:
    """‖f(x_j)‖ with f(x) = (x W_V + b_V) W_O of every head: [head, key]."""
    matrices, _ = output_matrices(trace.checkpoint, stack, layer, kind)
    values = trace.values(f"{stack}.layers.{layer}.{kind}_attention.value")  # [head, key, channel]
    return np.linalg.norm(values @ matrices, axis=-1)


def norm_weighted(trace: Trace, stack: str, layer: int, kind: str) -> np.ndarray:
    """‖α_ij f(x_j)‖ = α_ij ‖f(x_j)‖: [head, query, key], ≥ 0, in units of the residual stream.

    "Attention is Not Only a Weight" (Kobayashi et al. 2020): a key with a large weight and a short
    value passes little on, which is how heads come to rest on special tokens.
    """
    weights = trace.values(f"{stack}.layers.{layer}.{kind}_attention.weights")
    return weights * value_norms(trace, stack, layer, kind)[:, None, :]
