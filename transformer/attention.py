"""Scaled dot-product and multi-head attention (Vaswani et al. 2017, §3.2), with every step visible."""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from transformer.config import ModelConfig
from transformer.positions import RotaryEncoding
from transformer.probes import Probe, current_shortcut


def attention_scores(query: Tensor, key: Tensor, scale: float | None = None) -> Tensor:
    """Compute the scaled scores QKᵀ / √d_k.

    Without the division by √d_k, the variance of a score grows with d_k and the softmax saturates (§3.2.1, footnote 4).

    Args:
        query: Q, [batch, head, query, channel].
        key: K, [batch, head, key, channel].
        scale: The factor to use instead of 1 / √d_k, for model families that choose another.

    Returns:
        Scores, [batch, head, query, key].
    """
    scale = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    scores = query @ key.transpose(-2, -1)
    scores *= scale  # in place: the scores of a long text are hundreds of megabytes
    return scores


def attention_weights(scores: Tensor, allowed: Tensor) -> Tensor:
    """Apply a softmax over the keys that may be attended to; every other weight is exactly 0.

    Args:
        scores: [batch, head, query, key].
        allowed: Mask that broadcasts to the scores; ``True`` means "may attend".

    Returns:
        Weights, [batch, head, query, key]. A query that may attend to no key gets a row of zeros, where a plain softmax
        would give NaN.
    """
    # The lowest finite number instead of −∞ keeps a fully masked row finite; elsewhere its exponential is exactly 0.
    lowest = torch.finfo(scores.dtype).min
    weights = torch.softmax(torch.where(allowed, scores, lowest), dim=-1)
    return weights * allowed if torch.is_grad_enabled() else weights.mul_(allowed)  # a gradient needs the softmax


def scaled_dot_product_attention(query: Tensor, key: Tensor, value: Tensor, allowed: Tensor) -> Tensor:
    """Compute Attention(Q, K, V) = softmax(QKᵀ / √d_k) V, equation (1) of the paper.

    Args:
        query: Q, [batch, head, query, channel].
        key: K, [batch, head, key, channel].
        value: V, [batch, head, key, channel].
        allowed: Mask that broadcasts to the scores; ``True`` means "may attend".

    Returns:
        The weighted sum of the values, [batch, head, query, channel].
    """
    return attention_weights(attention_scores(query, key), allowed) @ value


class MultiHeadAttention(nn.Module):
    """Multi-head attention: Concat(head_1, …, head_h) W_O, head_i = Attention(Q W_Q,i, K W_K,i, V W_V,i).

    The per-head matrices W_Q,i are stacked into one: head i owns rows i·d_k to (i+1)·d_k − 1 of ``query_projection``.
    Self-attention computes queries, keys and values from the same sequence; cross-attention computes its keys and
    values from the output of the encoder.

    Attributes:
        heads_a_key: Number of heads that share one head of keys and values; more than 1 in third-party models only
            (Ainslie et al. 2023, §2.2), as are the following.
        window: Number of positions a query may attend to, up to its own (Beltagy et al. 2020; Jiang et al. 2023).
        score_cap: Scores become cap · tanh(score / cap) (Gemma 2, 2024, §2).
        normalizes: Whether queries and keys pass through a norm (Dehghani et al. 2023, §2).
    """

    heads_a_key = 1
    window: int | None = None
    score_cap: float | None = None
    normalizes = False

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
        """Let each query attend to its allowed keys, in every head at once.

        Args:
            query_input: The sequence that the queries are computed from.
            key_input: The sequence that the keys and values are computed from.
            allowed: ``True`` where the query may attend to the key.
            position_bias: Number to add to each score, for relative positions.

        Returns:
            The output of all heads together, [batch, query, model].
        """
        if (shortcut := current_shortcut()) is not None:  # the same result, computed faster: transformer/fast/
            return shortcut.attention(self, query_input, key_input, allowed, position_bias)
        query = self.queries(query_input)  # [batch, head, query, channel]
        key, value = self.keys_and_values(key_input)  # [batch, head, key, channel]
        return self.project_output(self.attend(query, key, value, allowed, position_bias))  # [batch, query, model]

    def queries(self, query_input: Tensor, start: int = 0) -> Tensor:
        """Compute the queries Q = x W_Q of all heads.

        Args:
            query_input: [batch, query, model].
            start: Position of the first query in its sequence, for rotary positions.

        Returns:
            [batch, head, query, channel].
        """
        return self.query(self.rotate(self.split_heads(self.query_projection(query_input)), start))

    def keys_and_values(self, key_input: Tensor, start: int = 0) -> tuple[Tensor, Tensor]:
        """Compute the keys K = x W_K and the values V = x W_V of all heads.

        Args:
            key_input: [batch, key, model].
            start: Position of the first key in its sequence, for rotary positions.

        Returns:
            Keys and values, [batch, head, key, channel] each.
        """
        key = self.key(self.rotate(self.split_heads(self.key_projection(key_input)), start))
        return key, self.value(self.split_heads(self.value_projection(key_input)))

    def attend(
        self, query: Tensor, key: Tensor, value: Tensor, allowed: Tensor, position_bias: Tensor | None
    ) -> Tensor:
        """Compute softmax(QKᵀ / √d_k + bias) V step by step, with a probe at each step.

        Returns:
            The context vectors of all heads, [batch, head, query, channel].
        """
        scores = attention_scores(query, key, self.scale)  # [batch, head, query, key]
        if position_bias is not None:
            scores = scores + position_bias  # [batch, head, query, key]
        scores = self.scores(scores)  # [batch, head, query, key]
        allowed = self.allowed(allowed)  # [batch, query, key]
        weights = self.weights(attention_weights(scores, allowed[:, None]))  # [batch, head, query, key]
        weights = F.dropout(weights, self.dropout, self.training)  # [batch, head, query, key]
        return self.context(weights @ value)  # [batch, head, query, channel]

    def project_output(self, context: Tensor) -> Tensor:
        """Project the concatenated heads: Concat(head_1, …, head_h) W_O.

        Args:
            context: [batch, head, query, channel].

        Returns:
            [batch, query, model].
        """
        return self.output(self.output_projection(self.merge_heads(context)))

    def rotate(self, heads: Tensor, start: int) -> Tensor:
        """Apply rotary positions to queries or keys, [batch, head, position, channel], if the model uses them."""
        return heads if self.rotary is None else self.rotary(heads, start)

    def split_heads(self, x: Tensor) -> Tensor:
        """Split [batch, position, model] into heads: [batch, head, position, channel]."""
        batch, n_positions, _ = x.shape
        return x.view(batch, n_positions, -1, self.d_head).transpose(1, 2)

    def merge_heads(self, heads: Tensor) -> Tensor:
        """Merge heads, [batch, head, position, channel], into [batch, position, model]: Concat in the formula."""
        batch, _, n_positions, _ = heads.shape
        return heads.transpose(1, 2).reshape(batch, n_positions, self.n_heads * self.d_head)
