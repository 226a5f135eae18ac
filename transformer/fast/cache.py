"""Cache of keys and values from earlier decoding steps, so that each step projects one token only."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn


class AttentionCache:
    """Keys and values of one attention layer, [batch, head, position, channel].

    A self-attention cache grows by one position per step. A cross-attention cache is filled once and is then
    ``complete``, because the source does not change during decoding.
    """

    def __init__(self, *, fixed: bool = False) -> None:
        self.fixed = fixed
        self.key: Tensor | None = None
        self.value: Tensor | None = None

    @property
    def length(self) -> int:
        """Number of positions in the cache."""
        return 0 if self.key is None else self.key.shape[-2]

    @property
    def complete(self) -> bool:
        """Whether the cache needs no more keys and values (cross-attention after the first step)."""
        return self.fixed and self.key is not None

    def append(self, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Add new positions, and return the keys and values of all positions so far."""
        if self.key is not None and self.value is not None:
            key = torch.cat((self.key, key), dim=-2)
            value = torch.cat((self.value, value), dim=-2)
        self.key, self.value = key, value
        return key, value

    def all_positions(self) -> tuple[Tensor, Tensor]:
        """Return the keys and values of all positions so far; the cache must not be empty."""
        assert self.key is not None and self.value is not None
        return self.key, self.value

    def select(self, rows: Tensor) -> None:
        """Keep these rows of the batch, in this order (beam search drops and duplicates hypotheses)."""
        if self.key is not None and self.value is not None:
            self.key, self.value = self.key[rows], self.value[rows]


class DecoderCache:
    """One cache for each attention layer of a decoder; ``use_cache`` lets the decoder use it."""

    def __init__(self, decoder: nn.Module) -> None:
        self.by_attention = dict(_caches(decoder))

    @property
    def length(self) -> int:
        """Number of target positions that have been decoded."""
        return next(cache.length for cache in self.by_attention.values() if not cache.fixed)

    def of(self, attention: nn.Module) -> AttentionCache | None:
        """Return the cache of one attention layer; ``None`` if the layer is not part of this decoder."""
        return self.by_attention.get(attention)

    def select(self, rows: Tensor) -> None:
        """Keep these rows of the batch, in this order, in every cache."""
        for cache in self.by_attention.values():
            cache.select(rows)


def _caches(decoder: Any) -> Iterator[tuple[nn.Module, AttentionCache]]:
    for layer in decoder.layers:
        yield layer.self_attention, AttentionCache()
        if layer.cross_attention is not None:
            yield layer.cross_attention, AttentionCache(fixed=True)
