"""Scaled dot-product attention and multi-head attention (Vaswani et al. 2017, §3.2), with nothing hidden."""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from transformer.config import ModelConfig
from transformer.positions import RotaryEncoding
from transformer.probes import Probe, current_shortcut


def attention_scores(query: Tensor, key: Tensor, scale: float | None = None) -> Tensor:
    """QKᵀ / √d_k: [batch, head, query, key] from [batch, head, query, channel] and [batch, head, key, channel].

    Without √d_k the variance of a score grows with d_k and the softmax saturates (§3.2.1, footnote 4). ``scale`` stands
    in place of 1 / √d_k for the families that take another.
    """
    scale = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    return query @ key.transpose(-2, -1) * scale


def attention_weights(scores: Tensor, allowed: Tensor) -> Tensor:
    """softmax over the keys that are allowed; exactly 0 for all others: [batch, head, query, key].

    ``allowed``: broadcastable to the scores, ``True`` = may attend. A query that may attend to nothing gets
    weights that are all 0 (a plain softmax would give NaN): it takes nothing from anybody.
    """
    # The lowest finite number instead of −∞ keeps a fully blocked row finite; exp of it is exactly 0 elsewhere.
    lowest = torch.finfo(scores.dtype).min
    return torch.softmax(torch.where(allowed, scores, lowest), dim=-1) * allowed


def scaled_dot_product_attention(query: Tensor, key: Tensor, value: Tensor, allowed: Tensor) -> Tensor:
    """Attention(Q, K, V) = softmax(QKᵀ / √d_k) V, equation (1) of the paper: [batch, head, query, channel]."""
    return attention_weights(attention_scores(query, key), allowed) @ value


class MultiHeadAttention(nn.Module):
    """MultiHead(Q, K, V) = Concat(head_1, …, head_h) W_O, head_i = Attention(Q W_Q,i, K W_K,i, V W_V,i).

    The per-head matrices W_Q,i are stacked into one: head i owns rows i·d_k … (i+1)·d_k of ``query_projection``.
    Self-attention reads queries, keys and values from the same sequence; cross-attention takes its keys
    and values from the encoder's output.
    """

    def __init__(self, config: ModelConfig, *, rotary: RotaryEncoding | None = None) -> None:
        super().__init__()
        self.n_heads, self.d_head = config.n_heads, config.d_head
        self.dropout = config.dropout
        self.rotary = rotary
        self.scale = 1 / math.sqrt(config.d_head)
        width = config.n_heads * config.d_head
        self.query_projection = nn.Linear(config.d_model, width)
        self.key_projection = nn.Linear(config.d_model, width)
        self.value_projection = nn.Linear(config.d_model, width)
        self.output_projection = nn.Linear(width, config.d_model)

        self.query = Probe("head", "position", "channel")
        self.key = Probe("head", "position", "channel")
        self.value = Probe("head", "position", "channel")
        self.scores = Probe("head", "query", "key")
        self.allowed = Probe("query", "key")
        self.weights = Probe("head", "query", "key")
        self.context = Probe("head", "query", "channel")
        self.output = Probe("position", "model")

    def forward(
        self,
        query_input: Tensor,  # [batch, query, model]
        key_input: Tensor,  # [batch, key, model]
        allowed: Tensor,  # [batch, query, key]
        position_bias: Tensor | None = None,  # [1, head, query, key]
    ) -> Tensor:  # [batch, query, model]
        if (shortcut := current_shortcut()) is not None:  # the same, faster: transformer/fast/
            return shortcut.attention(self, query_input, key_input, allowed, position_bias)
        query = self.queries(query_input)  # [batch, head, query, channel]
        key, value = self.keys_and_values(key_input)  # [batch, head, key, channel]
        return self.written(self.attend(query, key, value, allowed, position_bias))  # [batch, query, model]

    def queries(self, query_input: Tensor, start: int = 0) -> Tensor:
        """Q = x W_Q of all heads: [batch, head, query, channel]; ``start``: the position of the first of them."""
        return self.query(self.rotate(self.split_heads(self.query_projection(query_input)), start))

    def keys_and_values(self, key_input: Tensor, start: int = 0) -> tuple[Tensor, Tensor]:
        """K = x W_K and V = x W_V of all heads: [batch, head, key, channel] each."""
        key = self.key(self.rotate(self.split_heads(self.key_projection(key_input)), start))
        return key, self.value(self.split_heads(self.value_projection(key_input)))

    def attend(
        self, query: Tensor, key: Tensor, value: Tensor, allowed: Tensor, position_bias: Tensor | None
    ) -> Tensor:
        """softmax(QKᵀ / √d_k + bias) V, spelled out, every step of it shown."""
        scores = attention_scores(query, key, self.scale)  # [batch, head, query, key]
        if position_bias is not None:
            scores = scores + position_bias  # [batch, head, query, key]
        scores = self.scores(scores)  # [batch, head, query, key]
        allowed = self.allowed(allowed)  # [batch, query, key]
        weights = self.weights(attention_weights(scores, allowed[:, None]))  # [batch, head, query, key]
        weights = F.dropout(weights, self.dropout, self.training)  # [batch, head, query, key]
        return self.context(weights @ value)  # [batch, head, query, channel]

    def written(self, context: Tensor) -> Tensor:
        """Concat(head_1, …, head_h) W_O: [batch, query, model] from [batch, head, query, channel]."""
        return self.output(self.output_projection(self.merge_heads(context)))

    def rotate(self, heads: Tensor, start: int) -> Tensor:
        return heads if self.rotary is None else self.rotary(heads, start)

    def split_heads(self, x: Tensor) -> Tensor:
        """[batch, position, model] → [batch, head, position, channel]."""
        batch, n_positions, _ = x.shape
        return x.view(batch, n_positions, -1, self.d_head).transpose(1, 2)

    def merge_heads(self, heads: Tensor) -> Tensor:
        """[batch, head, position, channel] → [batch, position, model]: the Concat of the formula."""
        batch, _, n_positions, _ = heads.shape
        return heads.transpose(1, 2).reshape(batch, n_positions, self.n_heads * self.d_head)
