"""Disentangled attention (He et al. 2021, §3.1): separate vectors for content and relative position."""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from transformer.attention import MultiHeadAttention, attention_scores, attention_weights
from transformer.config import ModelConfig
from transformer.encoder import EncoderLayer
from transformer.layer_norm import LayerNorm
from transformer.probes import Probe


class RelativeEmbedding(nn.Module):
    """P: one vector per distance (or bucket of distances) from −span to span − 1: [2 · span, model]."""

    def __init__(self, config: ModelConfig, *, span: int, n_buckets: int, max_distance: int, norm: bool) -> None:
        super().__init__()
        self.span, self.n_buckets, self.max_distance = span, n_buckets, max_distance
        self.table = nn.Parameter(torch.zeros(2 * span, config.d_model))
        self.norm = LayerNorm(config) if norm else None

    def forward(self) -> Tensor:
        """Return the table, normalised if the family does so."""
        return self.table if self.norm is None else self.norm(self.table[None])[0]  # [2 · span, model]

    def distance(self, n_positions: int) -> Tensor:
        """Return δ(query, key) = query − key, in buckets if there are any: [query, key]."""
        position = torch.arange(n_positions, device=self.table.device)
        distance = position[:, None] - position
        return self.bucket(distance) if self.n_buckets > 0 else distance

    def bucket(self, distance: Tensor) -> Tensor:
        """Keep distances up to half the buckets, and put larger ones on a logarithmic scale (DeBERTa-v2)."""
        middle = self.n_buckets // 2
        size = torch.where(distance.abs() < middle, middle - 1, distance.abs())
        ratio = torch.log(size / middle) / torch.log(torch.tensor((self.max_distance - 1) / middle))
        far = torch.ceil(ratio * (middle - 1)) + middle
        return torch.where(size <= middle, distance, far * distance.sign()).long()


class DisentangledAttention(MultiHeadAttention):
    """score(i, j) = (q_i · k_j + q_i · r^k_δ(i,j) + k_j · r^q_δ(j,i)) / √(n · d_k), with n terms.

    r^k = P W_k and r^q = P W_q. Two terms have probes of their own, after the division: ``content_to_position`` is the
    second term, ``position_to_content`` the third. With ``share_projections``, P is projected by the matrices of the
    content.
    """

    def __init__(
        self,
        config: ModelConfig,
        relative: RelativeEmbedding | None,
        *,
        content_to_position: bool,
        position_to_content: bool,
        share_projections: bool,
    ) -> None:
        super().__init__(config)
        self.relative = (relative,)  # in a tuple, because all layers share it and none owns it
        n_terms = 1 + content_to_position + position_to_content
        self.scale = 1 / math.sqrt(n_terms * config.d_head)
        self.position_key_projection = self.position_query_projection = None
        if relative is not None and not share_projections:
            width = config.n_heads * config.d_head
            if content_to_position:
                self.position_key_projection = nn.Linear(config.d_model, width)
            if position_to_content:
                self.position_query_projection = nn.Linear(config.d_model, width)
        axes = ("head", "query", "key")
        self.content_to_position = Probe(*axes) if relative is not None and content_to_position else None
        self.position_to_content = Probe(*axes) if relative is not None and position_to_content else None

    def forward(
        self,
        query_input: Tensor,  # [batch, query, model]
        key_input: Tensor,  # [batch, key, model]
        allowed: Tensor,  # [batch, query, key]
        position_bias: Tensor | None = None,
    ) -> Tensor:  # [batch, query, model]
        """Attend with the two position terms added to the scores."""
        query = self.queries(query_input)  # [batch, head, query, channel]
        key, value = self.keys_and_values(key_input)  # [batch, head, key, channel]
        scores = attention_scores(query, key, self.scale)  # [batch, head, query, key]
        if self.relative[0] is not None:
            scores = scores + self.position_terms(query, key)  # [batch, head, query, key]
        scores = self.scores(scores)  # [batch, head, query, key]
        allowed = self.allowed(allowed)  # [batch, query, key]
        weights = self.weights(attention_weights(scores, allowed[:, None]))  # [batch, head, query, key]
        return self.project_output(self.context(weights @ value))  # [batch, query, model]

    def position_terms(self, query: Tensor, key: Tensor) -> Tensor:
        """Return the sum of the second and the third term: [batch, head, query, key]."""
        (relative,) = self.relative
        embeddings, distance = relative()[None], relative.distance(query.shape[-2])
        shape, last = (*query.shape[:2], *distance.shape), 2 * relative.span - 1
        terms = query.new_zeros(())
        if self.content_to_position is not None:
            keys = self.split_heads((self.position_key_projection or self.key_projection)(embeddings))
            row = (distance + relative.span).clamp(0, last).expand(shape)
            term = (query @ keys.transpose(-2, -1)).gather(-1, row)  # [batch, head, query, key]
            terms = terms + self.content_to_position(term * self.scale)
        if self.position_to_content is not None:
            queries = self.split_heads((self.position_query_projection or self.query_projection)(embeddings))
            row = (relative.span - distance).clamp(0, last).expand(shape)
            term = (key @ queries.transpose(-2, -1)).gather(-1, row).transpose(-2, -1)  # [batch, head, query, key]
            terms = terms + self.position_to_content(term * self.scale)
        return terms


class ConvolvedLayer(EncoderLayer):
    """An encoder layer with a parallel convolution, norm(layer(x) + f(conv(x))), as in DeBERTa-v2.

    The probe ``residual.out`` comes after the convolution, whose contribution is the probe ``convolution``.
    """

    def __init__(self, config: ModelConfig, *, kernel: int, groups: int, activation: str) -> None:
        super().__init__(config)
        self.convolution_weights = nn.Conv1d(
            config.d_model, config.d_model, kernel, padding=(kernel - 1) // 2, groups=groups
        )
        self.convolution_activation = {"tanh": torch.tanh, "gelu": F.gelu, "relu": F.relu}[activation]
        self.convolution = Probe("position", "model")
        self.convolution_norm = LayerNorm(config)
        self.before_convolution = Probe("position", "model")

    def forward(self, stream: Tensor, allowed: Tensor, position_bias: Tensor | None = None) -> Tensor:
        """Run the layer and the convolution, and normalise their sum."""
        real = allowed[:, :1].transpose(1, 2)  # [batch, position, 1]: the convolution skips padding
        x = self.residual["in"](stream * real)
        after = self.residual["after_self_attention"](
            self.self_attention_norm(x + self.self_attention(x, x, allowed, position_bias))
        )
        after = self.before_convolution(self.feed_forward_norm(after + self.feed_forward(after)))
        convolved = self.convolution_weights(x.transpose(1, 2)).transpose(1, 2) * real
        added = self.convolution(self.convolution_activation(convolved))
        return self.residual["out"](self.convolution_norm(after + added) * real)
