"""Attention equals torch's, and has the properties of its definition."""

from __future__ import annotations

import math

import pytest
import torch
from torch.nn import functional as F

from tests.transformer.tiny import config
from transformer.attention import (
    MultiHeadAttention,
    attention_scores,
    attention_weights,
    scaled_dot_product_attention,
)
from transformer.fast.shortcut import fast_path
from transformer.probes import name_probes, record


def heads(n_queries: int = 3, n_keys: int = 5, *, batch: int = 2, n_heads: int = 2, channel: int = 4) -> tuple:
    generator = torch.Generator().manual_seed(1)
    query = torch.randn(batch, n_heads, n_queries, channel, generator=generator)
    key = torch.randn(batch, n_heads, n_keys, channel, generator=generator)
    value = torch.randn(batch, n_heads, n_keys, channel + 2, generator=generator)
    allowed = torch.rand(batch, 1, n_queries, n_keys, generator=generator) > 0.4
    allowed[..., 0] = True
    return query, key, value, allowed


def test_equals_torch_scaled_dot_product_attention() -> None:
    query, key, value, allowed = heads()
    ours = scaled_dot_product_attention(query, key, value, allowed)
    theirs = F.scaled_dot_product_attention(query, key, value, attn_mask=allowed)
    torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-6)


def test_scores_are_dot_products_divided_by_the_root_of_the_channels() -> None:
    query, key, _, _ = heads()
    score = attention_scores(query, key)[1, 0, 2, 4]
    by_hand = sum(float(q) * float(k) for q, k in zip(query[1, 0, 2], key[1, 0, 4], strict=True)) / math.sqrt(4)
    assert float(score) == pytest.approx(by_hand, abs=1e-6)


def test_softmax_runs_over_the_keys() -> None:
    scores = torch.tensor([[[[0.0, math.log(2.0), math.log(5.0)], [0.0, 0.0, 0.0]]]])
    weights = attention_weights(scores, torch.ones(1, 1, 2, 3, dtype=torch.bool))
    torch.testing.assert_close(weights[0, 0], torch.tensor([[1 / 8, 2 / 8, 5 / 8], [1 / 3, 1 / 3, 1 / 3]]))


def test_rows_sum_to_one_and_masked_entries_are_exactly_zero() -> None:
    query, key, _, allowed = heads()
    weights = attention_weights(attention_scores(query, key) * 30, allowed)
    torch.testing.assert_close(weights.sum(dim=-1), torch.ones(2, 2, 3))
    assert (weights.masked_select(~allowed) == 0.0).all()
    assert (weights.masked_select(allowed) > 0.0).any()


@pytest.mark.parametrize("score", [-1e30, 0.0, 1e30])
def test_masked_entries_stay_zero_beside_extreme_scores(score: float) -> None:
    weights = attention_weights(torch.full((1, 1, 1, 3), score), torch.tensor([[[[True, False, True]]]]))
    assert weights[0, 0, 0].tolist() == [0.5, 0.0, 0.5]


def test_a_row_that_may_look_at_nothing_gives_zeros_not_nan() -> None:
    query, key, value, allowed = heads()
    allowed[1, :, 2] = False
    weights = attention_weights(attention_scores(query, key), allowed)
    assert (weights[1, :, 2] == 0).all()
    assert torch.isfinite(weights).all()
    context = scaled_dot_product_attention(query, key, value, allowed)
    assert (context[1, :, 2] == 0).all()


@pytest.mark.parametrize("with_bias", [False, True])
@pytest.mark.parametrize("blocked_row", [False, True])
def test_fast_path_equals_readable_path(with_bias: bool, blocked_row: bool) -> None:
    torch.manual_seed(0)
    attention = MultiHeadAttention(config()).eval()
    query_input, key_input = torch.randn(2, 3, 16), torch.randn(2, 5, 16)
    allowed = torch.rand(2, 3, 5) > 0.3
    allowed[:, :, 1] = True
    if blocked_row:
        allowed[1, 2] = False
    bias = torch.randn(1, 2, 3, 5) if with_bias else None
    readable = attention(query_input, key_input, allowed, bias)
    with fast_path():
        fast = attention(query_input, key_input, allowed, bias)
    torch.testing.assert_close(fast, readable, rtol=0, atol=1e-5)


def test_head_i_owns_its_own_rows_of_the_projection() -> None:
    torch.manual_seed(0)
    attention = MultiHeadAttention(config())
    name_probes(attention)
    x = torch.randn(1, 4, 16)
    with torch.inference_mode(), record() as recording:
        attention(x, x, torch.ones(1, 4, 4, dtype=torch.bool))
        matrix, bias = attention.query_projection.weight[8:16], attention.query_projection.bias[8:16]
        by_hand = x[0] @ matrix.T + bias
        merged = recording.tensors["context"][0].transpose(0, 1).reshape(4, 16)
        output = merged @ attention.output_projection.weight.T + attention.output_projection.bias
    torch.testing.assert_close(recording.tensors["query"][0, 1], by_hand)
    torch.testing.assert_close(recording.tensors["output"][0], output)
