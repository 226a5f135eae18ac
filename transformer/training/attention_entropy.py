"""Penalty on spread-out attention: as long as it applies, heads choose where to attend.

    loss = cross-entropy + λ · mean over heads, layers and rows of  H(α_i) / ln n_i

H(α_i) = −Σ_j α_ij ln α_ij is the entropy of one row of weights, and n_i the number of keys that the row may attend to,
so 1 is evenly spread attention, and 0 a row that attends to one key. Rows of padding and rows with one key are ignored.
λ falls to 0 before the end, so that heads keep only what helps to predict.

Zhai et al. 2023, "Stabilizing Transformer Training by Preventing Attention Entropy Collapse", warn of too low an
entropy.
"""

import torch
from torch import Tensor

from transformer.attention import MultiHeadAttention
from transformer.models import Model
from transformer.probes import Recording

_SMALLEST = 1e-9  # 0 · ln 0 is 0, and so must be its derivative


def price(penalty: float, falls_from: float, progress: float) -> float:
    """Return λ at ``progress``: ``penalty`` up to ``falls_from``, then linearly to 0."""
    return penalty * min(1.0, (1.0 - progress) / (1.0 - falls_from))


def mean_entropy(model: Model, recording: Recording) -> Tensor:
    """Return the entropy of attention as a share of the largest possible, averaged over heads and rows.

    ``recording`` is that of a pass, with the weights [batch, head, query, key] and the mask of every attention.
    """
    total, count = torch.zeros((), device=model.device), 0
    for name, module in model.named_modules():
        if not isinstance(module, MultiHeadAttention):
            continue
        weights, allowed = (recording.tensors[f"{name}.{part}"] for part in ("weights", "allowed"))
        n_keys = allowed.sum(dim=-1)  # [batch, query]
        rows = (n_keys > 1) & _real(recording, name)  # [batch, query]
        weights = weights.float()
        entropy = -(weights * weights.clamp_min(_SMALLEST).log()).sum(dim=-1)  # [batch, head, query]
        share = entropy / n_keys.clamp_min(2).log()[:, None]  # [batch, head, query]
        total = total + (share * rows[:, None]).sum()
        count += int(rows.sum()) * module.n_heads
    return total / max(count, 1)


def _real(recording: Recording, name: str) -> Tensor:
    """Return a mask of the queries that are not padding, [batch, query].

    These are the ones that may attend to themselves in the self-attention of their layer.
    """
    layer = name.rpartition(".")[0]
    return recording.tensors[f"{layer}.self_attention.allowed"].diagonal(dim1=-2, dim2=-1)
