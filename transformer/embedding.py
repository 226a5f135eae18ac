"""Token embedding × √d_model plus the positional encoding (Vaswani et al. 2017, §3.4 and §3.5).

An encoder that reads pairs of sentences also adds a segment embedding (Devlin et al. 2019, §3, Figure 2).
"""

import math

from torch import Tensor, nn

from transformer.config import SPECIAL_TOKENS, ModelConfig
from transformer.positions import additive_encoding
from transformer.probes import Probe


def embedding_table(config: ModelConfig) -> nn.Embedding:
    """Create the embedding matrix E, [vocabulary, model].

    Its entries are drawn from N(0, 1/d_model), so E · √d_model has unit variance.
    """
    table = nn.Embedding(config.vocabulary_size, config.d_model)
    nn.init.normal_(table.weight, std=config.d_model**-0.5)
    return table


def vocabulary_projection(config: ModelConfig, table: nn.Embedding) -> nn.Linear:
    """Create the projection to the vocabulary: x Eᵀ if tied (Vaswani et al. 2017, §3.4), else x W."""
    projection = nn.Linear(config.d_model, config.vocabulary_size, bias=False)
    if config.tie_embeddings:
        projection.weight = table.weight
    return projection


def segment_numbers(ids: Tensor, separator_id: int, pad_id: int | None, n_segments: int) -> Tensor:
    """Return the segment of every token, [batch, position]: 0 up to the first separator, then 1.

    A separator belongs to the segment that it ends, and padding to the first one (Devlin et al. 2019, Figure 2).
    """
    is_separator = (ids == separator_id).long()
    number = (is_separator.cumsum(dim=1) - is_separator).clamp(max=n_segments - 1)
    return number if pad_id is None else number * (ids != pad_id)


class Embedding(nn.Module):
    """Input embedding: x = dropout(E[id] · √d_model + PE(position)), plus S[segment] with segments.

    Row ``id`` of E equals a one-hot vector times E; looking it up is only cheaper.

    Attributes:
        projection: Matrix between narrow rows of E and the model; third-party models only, as is the following.
        norm: Norm of the sum.
        segment: S[segment] of every token, with segments.
    """

    def __init__(self, config: ModelConfig, table: nn.Embedding) -> None:
        super().__init__()
        self.scale = math.sqrt(config.d_model)
        self.table = table
        self.position_encoding = additive_encoding(config)
        self.dropout = nn.Dropout(config.dropout)
        self.token = Probe("position", "model")
        self.projection: nn.Module | None = None
        self.norm: nn.Module | None = None
        self.segment: Probe | None = None
        if self.position_encoding is not None:
            self.position = Probe("position", "model")
        self.add_segments(config.n_segments, config.d_model, config.pad_id)
        self.sum = Probe("position", "model")

    def add_segments(self, n_segments: int, width: int, pad_id: int | None) -> None:
        """Create the segment embeddings S, [segment, model], if ``n_segments`` is not 0."""
        self.segment_table: nn.Embedding | None = None
        if n_segments:
            self.separator_id, self.pad_id = SPECIAL_TOKENS.index("</s>"), pad_id
            self.segment_table = nn.Embedding(n_segments, width)
            nn.init.normal_(self.segment_table.weight, std=0.02)
            self.segment = Probe("position", "model")

    def embed_segments(self, ids: Tensor, table: nn.Embedding) -> Tensor:
        """Return S[segment] of every token, [batch, position, model]; ``table`` is S."""
        numbers = segment_numbers(ids, self.separator_id, self.pad_id, table.num_embeddings)
        assert self.segment is not None, "an embedding without segments is not asked for them"
        embedded: Tensor = self.segment(table(numbers))
        return embedded

    def forward(self, ids: Tensor, start: int = 0) -> Tensor:
        """Embed token ids.

        Args:
            ids: [batch, position].
            start: Position of the first id in its sequence.

        Returns:
            [batch, position, model].
        """
        embedded = self.token(self.table(ids) * self.scale)
        if self.position_encoding is not None:
            embedded = embedded + self.position(self.position_encoding(ids.shape[1], start))
        if self.segment_table is not None:
            embedded = embedded + self.embed_segments(ids, self.segment_table)
        return self.dropout(self.sum(embedded))
