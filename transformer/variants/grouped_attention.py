"""Grouped-query attention (Ainslie et al. 2023, §2.2) as in the Llama, Qwen and Gemma families."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from transformer.attention import MultiHeadAttention, attention_scores, attention_weights
from transformer.config import ModelConfig
from transformer.fast.shortcut import attend_fused
from transformer.fast.writing_steps import (
    HeadProjections,
    has_plain_projections,
    head_projections,
    plain_norm,
    projections,
    weights,
)
from transformer.layer_norm import RMSNorm


def sliding_window(n_queries: int, n_keys: int, window: int, device: torch.device | None = None) -> Tensor:
    """Return ``True`` where query − key < window: [query, key]. The queries are the last positions."""
    query = torch.arange(n_keys - n_queries, n_keys, device=device)[:, None]
    return query - torch.arange(n_keys, device=device) < window


class GroupedQueryAttention(MultiHeadAttention):
    """Attention in which several query heads share one head of keys and values, to save memory.

    ``n_key_heads`` divides ``n_heads``; head h uses the keys of head h · n_key_heads // n_heads. The probes ``key``
    and ``value`` come after the sharing, so that every head has its own.

    Args:
        config: The config of the model.
        n_key_heads: Number of heads of keys and values.
        rotary: The rotary encoding of queries and keys.
        window: Number of positions a query may attend to, up to its own (Beltagy et al. 2020; Jiang et al. 2023).
        score_cap: Scores become cap · tanh(score / cap) (Gemma 2, 2024, §2).
        query_key_norm_epsilon: Queries and keys are normalised per head before the rotation (Dehghani et al. 2023, §2;
            Qwen3, Gemma 3).
    """

    def __init__(
        self,
        config: ModelConfig,
        *,
        n_key_heads: int,
        rotary: nn.Module | None = None,
        window: int | None = None,
        score_cap: float | None = None,
        query_key_norm_epsilon: float | None = None,
    ) -> None:
        super().__init__(config, rotary=rotary)
        self.n_key_heads, self.window, self.score_cap = n_key_heads, window, score_cap
        self.key_projection = nn.Linear(config.d_model, n_key_heads * self.d_head)
        self.value_projection = nn.Linear(config.d_model, n_key_heads * self.d_head)
        self.query_norm = self.key_norm = None
        if query_key_norm_epsilon is not None:
            self.query_norm = RMSNorm(self.d_head, query_key_norm_epsilon, "head", "position")
            self.key_norm = RMSNorm(self.d_head, query_key_norm_epsilon, "head", "position")

    def queries(self, query_input: Tensor, start: int = 0) -> Tensor:
        """Return queries, normalised and rotated: [batch, head, query, channel]."""
        query = self.split_heads(self.query_projection(query_input))  # [batch, head, query, channel]
        query = query if self.query_norm is None else self.query_norm(query)
        return self.query(self.rotate(query, start))

    def keys_and_values(self, key_input: Tensor, start: int = 0) -> tuple[Tensor, Tensor]:
        """Return keys and values, one copy per query head: [batch, head, key, channel]."""
        key = self.split_heads(self.key_projection(key_input))  # [batch, key head, key, channel]
        value = self.split_heads(self.value_projection(key_input))  # [batch, key head, key, channel]
        key = key if self.key_norm is None else self.key_norm(key)
        return self.key(self.share(self.rotate(key, start))), self.value(self.share(value))

    def share(self, heads: Tensor) -> Tensor:
        """Return one copy per query head: [batch, key head, …] → [batch, head, …]."""
        return heads.repeat_interleave(self.n_heads // self.n_key_heads, dim=1)

    def attend(
        self, query: Tensor, key: Tensor, value: Tensor, allowed: Tensor, position_bias: Tensor | None
    ) -> Tensor:
        """Compute softmax(cap · tanh(QKᵀ · scale / cap)) V over the keys in the window."""
        scores = attention_scores(query, key, self.scale)  # [batch, head, query, key]
        if self.score_cap is not None:
            scores = self.score_cap * torch.tanh(scores / self.score_cap)  # [batch, head, query, key]
        scores = self.scores(scores)  # [batch, head, query, key]
        allowed = self.allowed(self.within_window(allowed))  # [batch, query, key]
        weights = self.weights(attention_weights(scores, allowed[:, None]))  # [batch, head, query, key]
        return self.context(weights @ value)  # [batch, head, query, channel]

    def within_window(self, allowed: Tensor) -> Tensor:
        """Restrict the mask [batch, query, key] to the window."""
        if self.window is None:
            return allowed
        return allowed & sliding_window(*allowed.shape[-2:], self.window, allowed.device)


@attend_fused.register(GroupedQueryAttention)
def _(
    attention: GroupedQueryAttention,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    allowed: Tensor | None,
    position_bias: Tensor | None,
) -> Tensor:
    """Use the readable implementation with a cap, which the fused kernel does not support."""
    if allowed is None and (attention.window is not None or attention.score_cap is not None):
        allowed = query.new_ones(1, query.shape[-2], key.shape[-2], dtype=torch.bool)  # [1, query, key]
    if attention.score_cap is not None:
        return attention.attend(query, key, value, allowed, position_bias)
    within = attention.within_window(allowed)
    return attend_fused.dispatch(MultiHeadAttention)(attention, query, key, value, within, position_bias)


@head_projections.register(GroupedQueryAttention)
def _(attention: GroupedQueryAttention) -> HeadProjections | None:
    """Rotate queries and keys together. Matrices are not stacked: copies of large ones take memory."""
    if type(attention) is not GroupedQueryAttention or not has_plain_projections(attention):
        return None
    matrices = [weights(part) for part in projections(attention)]
    query_norm = None if attention.query_norm is None else plain_norm(attention.query_norm)
    key_norm = None if attention.key_norm is None else plain_norm(attention.key_norm)
    n_heads, n_key_heads = attention.n_heads, attention.n_key_heads

    def project(x: Tensor, start: int) -> tuple[Tensor, Tensor, Tensor]:
        query, key, value = (attention.split_heads(F.linear(x, *matrix)) for matrix in matrices)
        query = query if query_norm is None else query_norm(query)
        key = key if key_norm is None else key_norm(key)
        turned = attention.rotate(torch.cat((query, key), dim=1), start)
        query, key = turned.split((n_heads, n_key_heads), dim=1)
        return query, attention.share(key), attention.share(value)

    return project
