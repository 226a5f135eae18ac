"""Attention masks. ``True`` means "may attend", in every mask of this project."""

import torch
from torch import Tensor


def padding_mask(ids: Tensor, pad_id: int | None) -> Tensor:
    """``True`` for real tokens, ``False`` for padding: [batch, key] from ids [batch, key].

    ``pad_id`` is ``None`` where no id means padding (GPT-2): every token is real.
    """
    return torch.ones_like(ids, dtype=torch.bool) if pad_id is None else ids != pad_id


def causal_mask(n_queries: int, n_keys: int, device: torch.device | None = None) -> Tensor:
    """``True`` where key ≤ query: [query, key] (Vaswani et al. 2017, §3.2.3).

    With fewer queries than keys the queries are the last positions, as in decoding with a cache.
    """
    return torch.ones(n_queries, n_keys, dtype=torch.bool, device=device).tril(n_keys - n_queries)


def combined_mask(keys_allowed: Tensor, n_queries: int, *, causal: bool) -> Tensor:
    """Padding and (optionally) causality together: [batch, query, key] from ``keys_allowed`` [batch, key]."""
    batch, n_keys = keys_allowed.shape
    allowed = keys_allowed[:, None, :].expand(batch, n_queries, n_keys)
    if causal and n_queries > 1:  # a single query stands last: everything lies before it
        allowed = allowed & causal_mask(n_queries, n_keys, keys_allowed.device)
    return allowed
