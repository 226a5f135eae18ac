"""Embeddings of other families: segments, a norm behind the sum, a narrower table, positions that skip some rows."""

import math

import torch
from torch import Tensor, nn

from transformer.config import ModelConfig
from transformer.embedding import Embedding
from transformer.layer_norm import LayerNorm
from transformer.probes import Probe


class FamilyEmbedding(Embedding):
    """x = norm((E[id] · scale + P(position) + S₀) W), of which a family has what it has.

    ``segments``: every token gets the vector of the first segment, S₀ (BERT, Devlin et al. 2019, §3). ``projection``
    widens a table that is narrower than the model (DeBERTa-v2's ``embed_proj``). ``norm``: LayerNorm behind the sum.
    """

    def __init__(
        self,
        config: ModelConfig,
        table: nn.Embedding,
        *,
        scale: float,
        position_encoding: nn.Module | None,
        segments: bool = False,
        norm: bool = False,
        projected: bool = False,
    ) -> None:
        super().__init__(config, table)
        self.scale = scale
        self.position_encoding = position_encoding
        if position_encoding is not None:
            self.position = Probe("position", "model")
        width = table.embedding_dim
        self.segment = nn.Parameter(torch.zeros(width)) if segments else None  # S₀
        self.projection = nn.Linear(width, config.d_model, bias=False) if projected else None  # W
        self.norm = LayerNorm(config) if norm else None

    def forward(self, ids: Tensor, start: int = 0) -> Tensor:
        embedded = self.token(self.table(ids) * self.scale)
        if self.segment is not None:
            embedded = embedded + self.segment
        if self.position_encoding is not None:
            embedded = embedded + self.position(self.position_encoding(ids.shape[1], start))
        embedded = self.sum(embedded)
        if self.projection is not None:
            embedded = self.projection(embedded)
        return embedded if self.norm is None else self.norm(embedded)


class HalvedSinusoids(nn.Module):
    """Sines in the first half of the channels, cosines in the second: the order of Marian and M2M100.

    ``offset``: the row of position 0; the families number positions from behind the padding token's.
    ``steps``: the frequencies are 10000^(−i / steps), computed in ``dtype``, as the family does.
    """

    def __init__(self, width: int, *, offset: int, steps: float, dtype: torch.dtype) -> None:
        super().__init__()
        self.width, self.offset, self.steps, self.dtype = width, offset, steps, dtype

    def forward(self, n_positions: int, start: int = 0) -> Tensor:
        position = torch.arange(start, start + n_positions, dtype=self.dtype)[:, None] + self.offset
        channel = torch.arange(self.width // 2, dtype=self.dtype)
        angle = position * torch.exp(channel * -(math.log(10_000.0) / self.steps))
        return torch.cat((angle.sin(), angle.cos()), dim=-1).float()[None]  # [1, position, model]
