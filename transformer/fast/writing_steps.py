"""Decoding steps: one more position of each text, in as few calls as possible.

A step computes a single position, and calling some fifty modules per layer would take longer than the matrix products;
most of these modules are probes that record nothing. So the layer of ``transformer/decoder.py`` is computed here
directly from its weights; any other part is called as it is.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from transformer.attention import MultiHeadAttention
from transformer.decoder import Decoder, DecoderLayer
from transformer.fast.cache import DecoderCache
from transformer.fast.shortcut import attend_fused, use_cache
from transformer.feed_forward import FeedForward
from transformer.layer_norm import LayerNorm, RMSNorm
from transformer.masks import combined_mask
from transformer.residual import residual_connection

# New positions, [batch, 1, model], and the number of the first one → their queries, keys and values,
# [batch, head, 1, channel].
HeadProjections = Callable[[Tensor, int], tuple[Tensor, Tensor, Tensor]]


class WritingSteps:
    """Decoder that reads one new position of each text; its caches hold all earlier positions.

    It must be in evaluation mode and have no forward hooks. The texts so far contain no padding, so every earlier
    position is visible.
    """

    def __init__(self, decoder: Decoder) -> None:
        self.decoder = decoder
        self.layers = [take_apart(layer) or layer for layer in decoder.layers]

    def __call__(
        self,
        ids: Tensor,  # [batch, 1]
        cache: DecoderCache,
        memory: Tensor | None = None,  # [batch, source position, model]
        memory_keys_allowed: Tensor | None = None,  # [batch, source position]
    ) -> Tensor:  # [batch, 1, model]
        """Decode one new position of each text.

        Returns:
            The hidden state of the new position, [batch, 1, model].
        """
        decoder, start = self.decoder, cache.length
        memory_allowed = None  # fused kernels are faster without a mask that allows everything
        if memory_keys_allowed is not None and not bool(memory_keys_allowed.all()):
            memory_allowed = combined_mask(memory_keys_allowed, 1, causal=False)
        bias = None if decoder.position_bias is None else decoder.position_bias(1, start + 1)
        stream = decoder.embedding(ids, start)
        with use_cache(cache):
            for layer in self.layers:
                if isinstance(layer, WritingLayer):
                    stream = layer(stream, memory_allowed, bias, cache)
                else:
                    stream = layer(stream, None, memory, memory_allowed, bias)
        return stream if decoder.final_norm is None else decoder.final_norm(stream)


class WritingLayer:
    """A ``DecoderLayer`` for one new position, computed directly from its weights."""

    def __init__(self, layer: DecoderLayer, project: HeadProjections) -> None:
        self.pre_norm = layer.pre_norm
        self.attention, self.cross_attention = layer.self_attention, layer.cross_attention
        self.project = project
        self.output = weights(self.attention.output_projection)
        self.attention_norm = plain_norm(layer.self_attention_norm)
        if self.cross_attention is not None and layer.cross_attention_norm is not None:
            self.cross_query = weights(self.cross_attention.query_projection)
            self.cross_output = weights(self.cross_attention.output_projection)
            self.cross_norm = plain_norm(layer.cross_attention_norm)
        self.feed_forward = plain_feed_forward(layer.feed_forward)
        self.feed_forward_norm = plain_norm(layer.feed_forward_norm)

    def __call__(
        self,
        stream: Tensor,  # [batch, 1, model]
        memory_allowed: Tensor | None,  # [batch, 1, source position]
        position_bias: Tensor | None,  # [1, head, 1, all positions]
        cache: DecoderCache,  # the cache is complete for cross-attention
    ) -> Tensor:  # [batch, 1, model]
        """Return the residual stream of the new position after this layer."""

        def attend(x: Tensor) -> Tensor:
            attention = self.attention
            so_far = cache.by_attention[attention]
            query, key, value = self.project(x, so_far.length)
            key, value = so_far.append(key, value)  # [batch, head, all positions, channel]
            context = attend_fused(attention, query, key, value, None, position_bias)
            return F.linear(attention.merge_heads(context), *self.output)

        stream = self.add(stream, attend, self.attention_norm)
        if (cross_attention := self.cross_attention) is not None:

            def attend_to_memory(x: Tensor) -> Tensor:
                key, value = cache.by_attention[cross_attention].all_positions()
                query = cross_attention.split_heads(F.linear(x, *self.cross_query))  # [batch, head, 1, channel]
                context = attend_fused(cross_attention, query, key, value, memory_allowed, None)
                return F.linear(cross_attention.merge_heads(context), *self.cross_output)

            stream = self.add(stream, attend_to_memory, self.cross_norm)
        return self.add(stream, self.feed_forward, self.feed_forward_norm)

    def add(self, stream: Tensor, sublayer: Callable[[Tensor], Tensor], norm: Callable[[Tensor], Tensor]) -> Tensor:
        """Add the output of a sub-layer to the residual stream, with the norm before or after it."""
        return residual_connection(stream, sublayer, norm, no_dropout, pre_norm=self.pre_norm)


def take_apart(layer: nn.Module) -> WritingLayer | None:
    """Return a layer as a ``WritingLayer``; ``None`` if one of its modules must be called as it is."""
    if type(layer) is not DecoderLayer:
        return None
    if layer.cross_attention is not None and projections(layer.cross_attention) is None:
        return None
    project = head_projections(layer.self_attention)
    return None if project is None else WritingLayer(layer, project)


def head_projections(attention: nn.Module) -> HeadProjections | None:
    """Return the projections of an attention layer on its weights; ``None`` if its modules must be called."""
    if type(attention) is not MultiHeadAttention or (modules := projections(attention)) is None:
        return None
    parts = [weights(part) for part in modules]
    biases = [bias for _, bias in parts if bias is not None]
    if len(biases) not in (0, len(parts)):
        return None
    stacked = torch.cat([matrix for matrix, _ in parts]), torch.cat(biases) if biases else None
    n_heads = attention.n_heads

    def project(x: Tensor, start: int) -> tuple[Tensor, Tensor, Tensor]:
        heads = attention.split_heads(F.linear(x, *stacked))  # [batch, 3 · head, 1, channel], in one product
        turned, value = torch.split(heads, [2 * n_heads, n_heads], dim=1)
        query, key = attention.rotate(turned, start).chunk(2, dim=1)
        return query, key, value

    return project


def projections(attention: nn.Module | None) -> tuple[nn.Linear, ...] | None:
    """Return W_Q, W_K and W_V of an attention layer; ``None`` if a user has replaced it or one of them."""
    if type(attention) is not MultiHeadAttention:
        return None
    found = attention.query_projection, attention.key_projection, attention.value_projection
    return found if {type(part) for part in (*found, attention.output_projection)} == {nn.Linear} else None


def weights(projection: nn.Linear) -> tuple[Tensor, Tensor | None]:
    """Return W and b."""
    return projection.weight, projection.bias


def no_dropout(x: Tensor) -> Tensor:
    """Return ``x`` unchanged: dropout outside of training."""
    return x


def plain_norm(norm: nn.Module) -> Callable[[Tensor], Tensor]:
    """Return a function for ``LayerNorm`` or ``RMSNorm`` without its probes; any other norm unchanged."""
    if type(norm) is RMSNorm:
        weight, tiny = norm.weight, norm.epsilon
        return lambda x: x * torch.rsqrt(x.square().mean(dim=-1, keepdim=True) + tiny) * weight
    if type(norm) is not LayerNorm:
        return norm
    shape, gamma, beta, epsilon = norm.weight.shape, norm.weight, norm.bias, norm.epsilon
    return lambda x: torch.layer_norm(x, shape, gamma, beta, epsilon)


def plain_feed_forward(layer: nn.Module) -> Callable[[Tensor], Tensor]:
    """Return f(x W₁ + b₁) W₂ + b₂ on the weights of a ``FeedForward``, and any other layer unchanged."""
    if type(layer) is not FeedForward or {type(layer.input_projection), type(layer.output_projection)} != {nn.Linear}:
        return layer
    first, second, activation = weights(layer.input_projection), weights(layer.output_projection), layer.activation
    return lambda x: F.linear(activation(F.linear(x, *first)), *second)
