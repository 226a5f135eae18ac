"""Keys and values that decoding has already computed, so that each step projects one token only."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn


class AttentionCache:
    """Keys and values of one attention layer: [batch, head, position, channel].

    A cache of self-attention grows by one position a step. A cache of cross-attention is filled
    once and then ``complete``, because the source does not change while the target is written.
    """

    def __init__(self, *, fixed: bool = False) -> None:
        self.fixed = fixed
        self.key: Tensor | None = None
        self.value: Tensor | None = None

    @property
    def length(self) -> int:
        return 0 if self.key is None else self.key.shape[-2]

    @property
    def complete(self) -> bool:
        return self.fixed and self.key is not None

    def append(self, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Add new positions; return the keys and values of all positions so far."""
        if self.key is not None and self.value is not None:
            key = torch.cat((self.key, key), dim=-2)
            value = torch.cat((self.value, value), dim=-2)
        self.key, self.value = key, value
        return key, value

    def kept(self) -> tuple[Tensor, Tensor]:
        """The keys and values of all positions so far. Raises ``RuntimeError`` before there are any."""
        if self.key is None or self.value is None:
            raise RuntimeError("nothing has been appended to this cache")
        return self.key, self.value

    def select(self, rows: Tensor) -> None:
        """Keep these rows of the batch, in this order (beam search drops and doubles hypotheses)."""
        if self.key is not None and self.value is not None:
            self.key, self.value = self.key[rows], self.value[rows]


class DecoderCache:
    """A cache for every attention of a decoder; ``keeping`` (``transformer.fast.shortcut``) lets the decoder use it."""

    def __init__(self, decoder: nn.Module) -> None:
        self.by_attention = dict(_caches(decoder))

    @property
    def length(self) -> int:
        """How many target positions have been decoded."""
        return next(cache.length for cache in self.by_attention.values() if not cache.fixed)

    def of(self, attention: nn.Module) -> AttentionCache | None:
        """The cache of one attention; ``None`` for one that is not of this decoder."""
        return self.by_attention.get(attention)

    def select(self, rows: Tensor) -> None:
        for cache in self.by_attention.values():
            cache.select(rows)


def _caches(decoder: Any) -> Iterator[tuple[nn.Module, AttentionCache]]:
    for layer in decoder.layers:
        yield layer.self_attention, AttentionCache()
        if layer.cross_attention is not None:
            yield layer.cross_attention, AttentionCache(fixed=True)
