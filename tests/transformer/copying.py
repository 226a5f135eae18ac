"""Two hand-built models with a known output: one copies the previous token, one has an induction head.

Residual stream: [code of the token | position, one-hot | output of the heads]. Heads that are not named write nothing
or attend evenly.
"""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor

from transformer import Checkpoint, ModelConfig, Tokenizer, build_model
from transformer.attention import MultiHeadAttention

WIDTH = 32  # width of each of the three parts of the residual stream, and of a head
COPYING = 1  # the head that copies
PREVIOUS, INDUCTION = (0, 1), (1, 2)  # (layer, head)
TOKEN, PLACE, WRITTEN = (slice(i * WIDTH, (i + 1) * WIDTH) for i in range(3))
ONE = torch.eye(WIDTH)


def copying_checkpoint(tokenizer: Tokenizer) -> Checkpoint:
    """Return a decoder-only model with one layer and three heads; only ``COPYING`` writes anything.

    "a b" continues as "a b a b …" forever: the next token is always the one before the last.
    """
    checkpoint, codes = _with_codes("copying", tokenizer, n_layers=1)
    decoder = checkpoint.model.decoder
    attention = decoder.layers[0].self_attention
    with torch.no_grad():
        attention.output_projection.weight.zero_()
        _copy_previous(attention, COPYING)
        decoder.vocabulary_projection.weight.zero_()[:, WRITTEN] = codes
    return checkpoint


def induction_checkpoint(tokenizer: Tokenizer) -> Checkpoint:
    """Return a decoder-only model with two layers of three heads, which reads ``WIDTH`` tokens.

    Head ``PREVIOUS`` of layer 0 writes the code of the previous token; head ``INDUCTION`` of layer 1 searches for
    positions that hold its own token there, which directly follow earlier occurrences.
    """
    checkpoint, _ = _with_codes("induction", tokenizer, n_layers=2)
    first, second = (layer.self_attention for layer in checkpoint.model.decoder.layers)
    with torch.no_grad():
        for attention in (first, second):
            for projection in (attention.query_projection, attention.key_projection, attention.output_projection):
                projection.weight.zero_()
        _copy_previous(first, PREVIOUS[1])
        head = _rows(INDUCTION[1])
        second.query_projection.weight[head, TOKEN] = 10 * ONE
        second.key_projection.weight[head, WRITTEN] = 10 * ONE
    return checkpoint


def _with_codes(name: str, tokenizer: Tokenizer, *, n_layers: int) -> tuple[Checkpoint, Tensor]:
    """Return a random model that reads codes and positions, and the codes, [vocabulary, channel]."""
    config = ModelConfig(
        kind="decoder-only", vocabulary_size=tokenizer.vocabulary_size, d_model=3 * WIDTH, n_heads=3, d_ff=4,
        n_encoder_layers=0, n_decoder_layers=n_layers, max_length=WIDTH, positions="learned", tie_embeddings=False,
    )  # fmt: skip
    generator = torch.Generator().manual_seed(0)
    # As many +1 as −1: every token has the same mean and norm, so LayerNorm treats all of them alike.
    signs = torch.tensor([1.0, -1.0]).repeat(WIDTH // 2)
    codes = torch.stack([signs[torch.randperm(WIDTH, generator=generator)] for _ in range(tokenizer.vocabulary_size)])
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = build_model(config).eval()
    with torch.no_grad():
        model.decoder.embedding.table.weight.zero_()[:, TOKEN] = codes / config.d_model**0.5
        model.decoder.embedding.position_encoding.table.zero_()[:, PLACE] = 4 * ONE
        for layer in model.decoder.layers:
            layer.feed_forward.output_projection.weight.zero_()
    return Checkpoint(Path(name), model, tokenizer, card=""), codes


def _copy_previous(attention: MultiHeadAttention, number: int) -> None:
    """Let a head attend to the previous token, and write its code."""
    head = _rows(number)
    for projection, part, values in (
        (attention.query_projection, PLACE, 20 * ONE),
        (attention.key_projection, PLACE, 20 * ONE.roll(1, dims=0)),  # the key of position j matches position j + 1
        (attention.value_projection, TOKEN, ONE),
    ):
        projection.weight[head] = 0.0
        projection.weight[head, part] = values
    attention.output_projection.weight[WRITTEN, head] = ONE


def _rows(head: int) -> slice:
    return slice(head * WIDTH, (head + 1) * WIDTH)
