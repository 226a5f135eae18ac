"""Embeddings of third-party families: segments, a norm, a narrower table, sines before cosines."""

import math
from dataclasses import replace

import torch
from torch import Tensor, nn

from transformer.config import ModelConfig
from transformer.embedding import Embedding
from transformer.layer_norm import LayerNorm
from transformer.probes import Probe


class FamilyEmbedding(Embedding):
    """x = norm((E[id] · scale + S[segment] + P(position)) W), where a family may lack some of these parts.

    Attributes:
        segment_table: S, one row per segment (BERT, Devlin et al. 2019, §3).
        projection: W, which widens a table that is narrower than the model (DeBERTa-v2's ``embed_proj``).
        norm: LayerNorm after the sum.
    """

    def __init__(
        self,
        config: ModelConfig,
        table: nn.Embedding,
        *,
        scale: float,
        position_encoding: nn.Module | None,
        n_segments: int = 0,
        norm: bool = False,
        projected: bool = False,
    ) -> None:
        super().__init__(replace(config, positions="none", n_segments=0), table)  # the family has its own
        self.scale = scale
        self.position_encoding = position_encoding
        if position_encoding is not None:
            self.position = Probe("position", "model")
        width = table.embedding_dim
        self.add_segments(n_segments, width, config.pad_id)
        self.projection = nn.Linear(width, config.d_model, bias=False) if projected else None  # W
        self.norm = LayerNorm(config) if norm else None

    def forward(self, ids: Tensor, start: int = 0) -> Tensor:
        """Embed ids [batch, position] as [batch, position, model]."""
        embedded = self.token(self.table(ids) * self.scale)
        if self.segment_table is not None:
            embedded = embedded + self.embed_segments(ids, self.segment_table)
        if self.position_encoding is not None:
            embedded = embedded + self.position(self.position_encoding(ids.shape[1], start))
        embedded = self.sum(embedded)
        if self.projection is not None:
            embedded = self.projection(embedded)
        return embedded if self.norm is None else self.norm(embedded)


class HalvedSinusoids(nn.Module):
    """Sines in the first half of the channels, cosines in the second: the order of Marian.

    Args:
        width: Number of channels; if it is odd, there is one sine more than cosines.
        offset: Row of position 0.
        steps: The frequencies are 10000^(−i / steps); by default, steps are half of the channels.
        stored: Number of rows of a table that the checkpoint contains, rounded if it is in half precision.
    """

    def __init__(self, width: int, *, offset: int = 0, steps: float | None = None, stored: int = 0) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.empty(stored, width)) if stored else None
        self.width, self.offset, self.steps = width, offset, width / 2 if steps is None else steps

    def forward(self, n_positions: int, start: int = 0) -> Tensor:
        """Return the encodings of positions ``start`` to ``start + n_positions − 1``."""
        if self.table is not None:
            return self.table[None, start : start + n_positions]  # [1, position, model]
        position = torch.arange(start, start + n_positions, dtype=torch.float64)[:, None] + self.offset
        channel = torch.arange(self.width - self.width // 2, dtype=torch.float64)
        angle = position * torch.exp(channel * -(math.log(10_000.0) / self.steps))
        return torch.cat((angle.sin(), angle[:, : self.width // 2].cos()), dim=-1).float()[None]
