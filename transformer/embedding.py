"""Token embedding × √d_model plus the positional encoding (Vaswani et al. 2017, §3.4 and §3.5)."""

import math

from torch import Tensor, nn

from transformer.config import ModelConfig
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


class Embedding(nn.Module):
    """Input embedding: x = dropout(E[id] · √d_model + PE(position)).

    Row ``id`` of E equals a one-hot vector times E; looking it up is only cheaper.
    """

    def __init__(self, config: ModelConfig, table: nn.Embedding) -> None:
        super().__init__()
        self.scale = math.sqrt(config.d_model)
        self.table = table
        self.position_encoding = additive_encoding(config)
        self.dropout = nn.Dropout(config.dropout)
        self.token = Probe("position", "model")
        if self.position_encoding is not None:
            self.position = Probe("position", "model")
        self.sum = Probe("position", "model")

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
        return self.dropout(self.sum(embedded))
