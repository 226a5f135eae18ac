"""A hand-built model with an induction head: two layers of the parts of ``copying.py``.

Residual stream: [code of the token | position, one-hot | code of the previous token]. Head ``PREVIOUS`` of layer 0
writes the third part; head ``INDUCTION`` of layer 1 searches for positions whose third part is the code of its own
token, which directly follow earlier occurrences. All other heads attend evenly.
"""

from __future__ import annotations

from pathlib import Path

import torch

from tests.transformer.copying import WIDTH
from transformer import Checkpoint, ModelConfig, Tokenizer, build_model

PREVIOUS, INDUCTION = (0, 1), (1, 2)  # (layer, head)


def induction_checkpoint(tokenizer: Tokenizer) -> Checkpoint:
    """Return a decoder-only model with two layers of three heads, which reads ``WIDTH`` tokens."""
    config = ModelConfig(
        kind="decoder-only", vocabulary_size=tokenizer.vocabulary_size, d_model=3 * WIDTH, n_heads=3, d_ff=4,
        n_encoder_layers=0, n_decoder_layers=2, max_length=WIDTH, positions="learned", tie_embeddings=False,
    )  # fmt: skip
    generator = torch.Generator().manual_seed(0)
    signs = torch.tensor([1.0, -1.0]).repeat(WIDTH // 2)
    codes = torch.stack([signs[torch.randperm(WIDTH, generator=generator)] for _ in range(tokenizer.vocabulary_size)])
    token, place, before = (slice(i * WIDTH, (i + 1) * WIDTH) for i in range(3))
    with torch.random.fork_rng():
        torch.manual_seed(0)
        decoder = (model := build_model(config).eval()).decoder
    one = torch.eye(WIDTH)
    with torch.no_grad():
        decoder.embedding.table.weight.zero_()[:, token] = codes / config.d_model**0.5
        decoder.embedding.position_encoding.table.zero_()[:, place] = 4 * one
        for layer in decoder.layers:
            attention = layer.self_attention
            for projection in (attention.query_projection, attention.key_projection, attention.output_projection):
                projection.weight.zero_()
            layer.feed_forward.output_projection.weight.zero_()
        first, second = (decoder.layers[layer].self_attention for layer, _ in (PREVIOUS, INDUCTION))
        head = _rows(PREVIOUS)
        first.query_projection.weight[head, place] = 20 * one
        first.key_projection.weight[head, place] = 20 * one.roll(1, dims=0)
        first.value_projection.weight[head] = 0.0
        first.value_projection.weight[head, token] = one
        first.output_projection.weight[before, head] = one
        head = _rows(INDUCTION)
        second.query_projection.weight[head, token] = 10 * one
        second.key_projection.weight[head, before] = 10 * one
    return Checkpoint(Path("induction"), model, tokenizer, card="")


def _rows(place: tuple[int, int]) -> slice:
    return slice(place[1] * WIDTH, (place[1] + 1) * WIDTH)
