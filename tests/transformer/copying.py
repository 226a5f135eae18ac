"""A hand-built model with a known output: one head copies the previous token, two write nothing.

Residual stream: [code of the token | position, one-hot | output of the heads]. "a b" continues as "a b a b …" forever:
the next token is always the one before the last.
"""

from __future__ import annotations

from pathlib import Path

import torch

from transformer import Checkpoint, ModelConfig, Tokenizer, build_model

WIDTH = 32  # width of each of the three parts of the residual stream, and of a head
COPYING = 1  # the head that copies


def copying_checkpoint(tokenizer: Tokenizer) -> Checkpoint:
    """Return a decoder-only model with one layer and three heads; only ``COPYING`` writes anything."""
    config = ModelConfig(
        kind="decoder-only", vocabulary_size=tokenizer.vocabulary_size, d_model=3 * WIDTH, n_heads=3, d_ff=4,
        n_encoder_layers=0, n_decoder_layers=1, max_length=WIDTH, positions="learned", tie_embeddings=False,
    )  # fmt: skip
    generator = torch.Generator().manual_seed(0)
    # As many +1 as −1: every token has the same mean and norm, so LayerNorm treats all of them alike.
    signs = torch.tensor([1.0, -1.0]).repeat(WIDTH // 2)
    codes = torch.stack([signs[torch.randperm(WIDTH, generator=generator)] for _ in range(tokenizer.vocabulary_size)])
    token, place, written = (slice(i * WIDTH, (i + 1) * WIDTH) for i in range(3))
    head = slice(COPYING * WIDTH, (COPYING + 1) * WIDTH)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = build_model(config).eval()
    decoder = model.decoder
    attention, feed_forward = decoder.layers[0].self_attention, decoder.layers[0].feed_forward
    with torch.no_grad():
        decoder.embedding.table.weight.zero_()[:, token] = codes / config.d_model**0.5
        decoder.embedding.position_encoding.table.zero_()[:, place] = 4 * torch.eye(WIDTH)
        one = torch.eye(WIDTH)
        for projection, part, values in (
            (attention.query_projection, place, 20 * one),
            (attention.key_projection, place, 20 * one.roll(1, dims=0)),  # the key of position j matches position j + 1
            (attention.value_projection, token, one),
        ):
            projection.weight[head] = 0.0
            projection.weight[head, part] = values
        attention.output_projection.weight.zero_()[written, head] = one
        feed_forward.output_projection.weight.zero_()
        decoder.vocabulary_projection.weight.zero_()[:, written] = codes
    return Checkpoint(Path("copying"), model, tokenizer, card="")
