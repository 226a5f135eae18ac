"""Keys and values that decoding has already computed, so that each step projects one token only."""

import torch
from torch import Tensor


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
        if self.key is not None:
            key = torch.cat((self.key, key), dim=-2)
            value = torch.cat((self.value, value), dim=-2)
        self.key, self.value = key, value
        return key, value

    def select(self, rows: Tensor) -> None:
        """Keep these rows of the batch, in this order (beam search drops and doubles hypotheses)."""
        if self.key is not None:
            self.key, self.value = self.key[rows], self.value[rows]


class DecoderCache:
    """One self-attention and one cross-attention cache per decoder layer."""

    def __init__(self, n_layers: int) -> None:
        self.self_attention = [AttentionCache() for _ in range(n_layers)]
        self.cross_attention = [AttentionCache(fixed=True) for _ in range(n_layers)]

    @property
    def length(self) -> int:
        """How many target positions have been decoded."""
        return self.self_attention[0].length

    def select(self, rows: Tensor) -> None:
        for cache in self.self_attention + self.cross_attention:
            cache.select(rows)
