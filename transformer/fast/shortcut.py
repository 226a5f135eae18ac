"""Shorter ways to what attention and LayerNorm compute, for the call that runs: fused kernels, and a cache.

``MultiHeadAttention`` and ``LayerNorm`` ask ``current_shortcut`` and let it compute in their place. Nothing of it
outlives its block, and no other thread takes it.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import singledispatch

import torch
from torch import Tensor
from torch.nn import functional as F

from transformer.attention import MultiHeadAttention
from transformer.fast.cache import DecoderCache
from transformer.layer_norm import LayerNorm
from transformer.probes import current_shortcut, is_recording, use_shortcut


@dataclass(frozen=True)
class Shortcut:
    """``fused``: whether torch's kernels may be taken; ``cache``: what has been computed of the positions before."""

    fused: bool = False
    cache: DecoderCache | None = None

    def attention(
        self,
        attention: MultiHeadAttention,
        query_input: Tensor,  # [batch, query, model]
        key_input: Tensor,  # [batch, key, model]; with a cache only the new positions
        allowed: Tensor | None,  # [batch, query, key]; None (all of them) where kernels are fused
        position_bias: Tensor | None,  # [1, head, query, key]
    ) -> Tensor:  # [batch, query, model]
        """What ``attention`` writes into the residual stream."""
        cache = None if self.cache is None else self.cache.of(attention)
        start = 0 if cache is None else cache.length
        if cache is not None and cache.complete:  # cross-attention: the source does not change while decoding
            query = attention.queries(query_input)  # [batch, head, query, channel]
            key, value = cache.kept()
        else:
            query = attention.queries(query_input, start)  # [batch, head, query, channel]
            key, value = attention.keys_and_values(key_input, start)  # [batch, head, key, channel]
            if cache is not None:
                key, value = cache.append(key, value)  # [batch, head, all keys, channel]
        if takes_fast_path():
            return attention.project_output(attend_fused(attention, query, key, value, allowed, position_bias))
        if allowed is None:
            raise ValueError("without a mask only fused kernels can be taken")
        return attention.project_output(attention.attend(query, key, value, allowed, position_bias))

    def layer_norm(self, norm: LayerNorm, x: Tensor) -> Tensor:
        """γ · (x − μ) / √(σ² + ε) + β in one kernel."""
        if not takes_fast_path():
            return norm.normalise(x)
        return F.layer_norm(x, norm.weight.shape, norm.weight, norm.bias, norm.epsilon)


@singledispatch
def attend_fused(
    attention: MultiHeadAttention,
    query: Tensor,  # [batch, head, query, channel]
    key: Tensor,  # [batch, head, key, channel]
    value: Tensor,  # [batch, head, key, channel]
    allowed: Tensor | None,  # [batch, query, key]
    position_bias: Tensor | None,  # [1, head, query, key]
) -> Tensor:  # [batch, head, query, channel]
    """``attention.attend`` in one kernel that never writes the weights down (Dao et al. 2022).

    ``allowed`` is ``None`` where every query may attend to every key: the kernel is quicker without a mask.
    """
    mask = position_bias  # [1, head, query, key]
    if allowed is not None:
        mask = allowed[:, None]  # [batch, 1, query, key]
        if position_bias is not None:  # a row of nothing but −∞ gives zeros here, too
            mask = torch.where(mask, position_bias, -torch.inf)  # [batch, head, query, key]
    dropout = attention.dropout if attention.training else 0.0
    return F.scaled_dot_product_attention(query, key, value, mask, dropout, scale=attention.scale)


def fast_path() -> AbstractContextManager[None]:
    """Let layers take torch's fused kernels, which hide the attention weights.

    Same results up to rounding (a test holds the two equal). A recording always takes the readable path.
    """
    return use_shortcut(replace(current_shortcut() or Shortcut(), fused=True))


def keeping(cache: DecoderCache) -> AbstractContextManager[None]:
    """Let the decoder of ``cache`` read keys and values from it, and add those of the positions that it is given."""
    return use_shortcut(replace(current_shortcut() or Shortcut(), cache=cache))


def takes_fast_path() -> bool:
    shortcut = current_shortcut()
    return shortcut is not None and shortcut.fused and not is_recording()
