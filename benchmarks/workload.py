"""Benchmark workload: two shapes with random weights, as ordinary checkpoints."""

import random
import string
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from transformer.config import ModelConfig
from transformer.files.build import build_model
from transformer.files.checkpoints import Checkpoint
from transformer.text.tokenizer import END_ID, SPECIAL_TOKENS, Tokenizer


@dataclass(frozen=True)
class Shape:
    """A model and the length of its input.

    ``n_tokens`` is the number of tokens that each stack reads in a forward pass. In decoding it is the length of the
    prompt (decoder-only) or of the source (encoder-decoder).
    """

    name: str
    config: ModelConfig
    n_tokens: int

    def inputs(self) -> tuple[Tensor, ...]:
        """Return random ids, [1, position], one tensor per stack, without special tokens."""
        generator = torch.Generator().manual_seed(1)
        size, low = (1, self.n_tokens), len(SPECIAL_TOKENS)
        n_stacks = self.config.has_encoder + self.config.has_decoder
        return tuple(
            torch.randint(low, self.config.vocabulary_size, size, generator=generator) for _ in range(n_stacks)
        )


SMALL = Shape(
    "decoder-only, d 128, 4 heads, 4 layers, 16 tokens",
    ModelConfig(
        kind="decoder-only",
        d_model=128,
        n_heads=4,
        d_ff=512,
        n_encoder_layers=0,
        n_decoder_layers=4,
        positions="learned",
        activation="gelu",
    ),
    16,
)
MEDIUM = Shape(
    "encoder-decoder, d 256, 8 heads, 4 + 4 layers, 32 + 32 tokens",
    ModelConfig(d_model=256, n_heads=8, d_ff=1024, n_encoder_layers=4, n_decoder_layers=4),
    32,
)


def random_checkpoint(config: ModelConfig) -> Checkpoint:
    """Return a checkpoint in memory with random weights and a tokenizer trained on random words."""
    words = random.Random(0)
    text = " ".join("".join(words.choices(string.ascii_lowercase, k=7)) for _ in range(config.vocabulary_size))
    torch.manual_seed(0)
    model = build_model(config).eval()
    never_write(model.decoder.vocabulary_projection.weight, END_ID)
    return Checkpoint(Path("random-weights"), model, Tokenizer.train([text], config.vocabulary_size), card="")


def never_write(output_embeddings: Tensor, id: int) -> None:
    """Give ``id`` the logit 0, which is never the largest of a random model, so it generates to the limit.

    The decoding loop is not changed for this, here or in the peers.
    """
    with torch.no_grad():
        output_embeddings[id] = 0.0


def sentence_of(tokenizer: Tokenizer, n_tokens: int) -> str:
    """Return a text of exactly ``n_tokens`` tokens."""
    text = " ".join("a" * n_tokens)
    if (found := len(tokenizer.encode(text))) != n_tokens:
        raise ValueError(f"the text for {n_tokens} tokens has {found}; train the tokenizer with a larger vocabulary")
    return text
