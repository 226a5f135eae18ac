"""Attention masks. ``True`` means "may attend", in every mask of this project."""

import torch
from torch import Tensor


def padding_mask(ids: Tensor, pad_id: int | None) -> Tensor:
    """Return a mask that is ``True`` for real tokens and ``False`` for padding.

    Args:
        ids: Token ids, [batch, key].
        pad_id: Token id of padding; ``None`` if there is none (GPT-2), so that every token is real.

    Returns:
        [batch, key].
    """
    return torch.ones_like(ids, dtype=torch.bool) if pad_id is None else ids != pad_id


def causal_mask(n_queries: int, n_keys: int, device: torch.device | None = None) -> Tensor:
    """Return a mask that is ``True`` where key ≤ query, [query, key] (Vaswani et al. 2017, §3.2.3).

    If there are fewer queries than keys, the queries are the last positions, as in decoding with a cache.
    """
    return torch.ones(n_queries, n_keys, dtype=torch.bool, device=device).tril(n_keys - n_queries)


def combined_mask(keys_allowed: Tensor, n_queries: int, *, causal: bool) -> Tensor:
    """Combine padding and, if ``causal``, causality into one mask.

    Args:
        keys_allowed: ``True`` for real tokens, [batch, key].
        n_queries: Number of queries.
        causal: Whether a query may attend only to itself and to earlier positions.

    Returns:
        [batch, query, key].
    """
    batch, n_keys = keys_allowed.shape
    allowed = keys_allowed[:, None, :].expand(batch, n_queries, n_keys)
    if causal and n_queries > 1:  # a single query is the last position: every key is at or before it
        allowed = allowed & causal_mask(n_queries, n_keys, keys_allowed.device)
    return allowed
