"""Faster ways to compute attention and LayerNorm in the current call: fused kernels and a cache.

``MultiHeadAttention`` and ``LayerNorm`` get the shortcut from ``current_shortcut`` and let it compute their result. It
applies only within its block and its thread.
"""

from __future__ import annotations

from collections.abc import MutableMapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.utils.weak import WeakIdKeyDictionary

from transformer.attention import MultiHeadAttention
from transformer.fast.cache import DecoderCache
from transformer.layer_norm import LayerNorm
from transformer.masks import causal_mask
from transformer.probes import Probe, current_shortcut, is_recording, is_watched, use_shortcut

_LONG = 128  # tokens from which skipping the upper triangle saves more time than finding out costs
# Whether a mask is causal; the layers of a pass share their mask.
_CAUSAL: MutableMapping[Tensor, bool] = WeakIdKeyDictionary()


@dataclass(frozen=True)
class Shortcut:
    """Settings of the faster path.

    Attributes:
        fused: Whether torch's fused kernels may be used.
        cache: Keys and values of earlier positions.
    """

    fused: bool = False
    cache: DecoderCache | None = None

    def attention(
        self,
        attention: MultiHeadAttention,
        query_input: Tensor,  # [batch, query, model]
        key_input: Tensor,  # [batch, key, model]; with a cache only the new positions
        allowed: Tensor | None,  # [batch, query, key]; None if all are allowed and kernels are fused
        position_bias: Tensor | None,  # [1, head, query, key]
    ) -> Tensor:  # [batch, query, model]
        """Return what ``attention`` adds to the residual stream."""
        cache = None if self.cache is None else self.cache.of(attention)
        start = 0 if cache is None else cache.length
        if cache is not None and cache.complete:  # cross-attention: the source does not change while decoding
            query = attention.queries(query_input)  # [batch, head, query, channel]
            key, value = cache.all_positions()
        else:
            query = attention.queries(query_input, start)  # [batch, head, query, channel]
            key, value = attention.keys_and_values(key_input, start)  # [batch, head, key, channel]
            if cache is not None:
                key, value = cache.append(key, value)  # [batch, head, all keys, channel]
        if fuses(attention.scores, attention.allowed, attention.weights, attention.context):
            return attention.project_output(attend_fused(attention, query, key, value, allowed, position_bias))
        assert allowed is not None, "only fused kernels do without a mask"
        return attention.project_output(attention.attend(query, key, value, allowed, position_bias))

    def layer_norm(self, norm: LayerNorm, x: Tensor) -> Tensor:
        """Compute γ · (x − μ) / √(σ² + ε) + β in one kernel."""
        if not fuses(norm.input, norm.mean, norm.std, norm.normalized, norm.output):
            return norm.normalise(x)
        return F.layer_norm(x, norm.weight.shape, norm.weight, norm.bias, norm.epsilon)


def attend_fused(
    attention: MultiHeadAttention,
    query: Tensor,  # [batch, head, query, channel]
    key: Tensor,  # [batch, head, key, channel]
    value: Tensor,  # [batch, head, key, channel]
    allowed: Tensor | None,  # [batch, query, key]
    position_bias: Tensor | None,  # [1, head, query, key]
) -> Tensor:  # [batch, head, query, channel]
    """Compute ``attention.attend`` in one kernel that never stores the weights (Dao et al. 2022).

    ``allowed`` is ``None`` if every query may attend to every key: the kernel is faster without a mask.
    """
    mask = position_bias  # [1, head, query, key]
    causal = position_bias is None and allowed is not None and is_causal(allowed)
    if allowed is not None and not causal:
        mask = allowed[:, None]  # [batch, 1, query, key]
        if position_bias is not None:  # a row of nothing but −∞ gives zeros here as well
            mask = torch.where(mask, position_bias, -torch.inf)  # [batch, head, query, key]
    dropout = attention.dropout if attention.training else 0.0
    return F.scaled_dot_product_attention(query, key, value, mask, dropout, is_causal=causal, scale=attention.scale)


def is_causal(mask: Tensor) -> bool:
    """Return whether causality alone masks a long text: the kernel then skips the upper triangle.

    Args:
        mask: Which key each query may attend to, […, query, key], or 0 and the lowest number.
    """
    n_queries, n_keys = mask.shape[-2:]
    if n_queries != n_keys or n_queries < _LONG:
        return False
    if (known := _CAUSAL.get(mask)) is None:
        allowed = causal_mask(n_queries, n_keys, mask.device)
        if mask.is_floating_point():
            allowed = torch.where(allowed, 0.0, torch.finfo(mask.dtype).min).to(mask.dtype)
        known = _CAUSAL[mask] = bool((mask == allowed).all())
    return known


def fast_path() -> AbstractContextManager[None]:
    """Let layers use torch's fused kernels, which hide the attention weights.

    Results are the same up to rounding, as a test checks. A layer uses the readable path if a recording keeps or edits
    a tensor that a fused kernel hides.
    """
    return use_shortcut(replace(current_shortcut() or Shortcut(), fused=True))


def use_cache(cache: DecoderCache) -> AbstractContextManager[None]:
    """Let the decoder of ``cache`` use its keys and values, and add those of new positions."""
    return use_shortcut(replace(current_shortcut() or Shortcut(), cache=cache))


def uses_fast_path() -> bool:
    """Return whether every layer uses fused kernels in the current call."""
    shortcut = current_shortcut()
    return shortcut is not None and shortcut.fused and not is_recording()


def fuses(*probes: Probe) -> bool:
    """Return whether a layer uses fused kernels, which hide ``probes``, in the current call."""
    shortcut = current_shortcut()
    return shortcut is not None and shortcut.fused and not is_watched(*probes)
