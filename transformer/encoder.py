"""The encoder: a stack of self-attention and feed-forward layers (Vaswani et al. 2017, §3.1)."""

from torch import Tensor, nn

from transformer.attention import MultiHeadAttention
from transformer.config import ModelConfig
from transformer.embedding import Embedding, vocabulary_projection
from transformer.feed_forward import FeedForward
from transformer.layer_norm import norm_layer
from transformer.masks import combined_mask, padding_mask
from transformer.positions import RelativePositionBias, RotaryEncoding
from transformer.probes import Probe
from transformer.residual import residual_connection


class EncoderLayer(nn.Module):
    """One encoder layer: self-attention, then feed-forward, each with a residual connection and LayerNorm."""

    def __init__(self, config: ModelConfig, *, rotary: RotaryEncoding | None = None) -> None:
        super().__init__()
        self.pre_norm = config.norm == "pre"
        self.self_attention_norm = norm_layer(config)
        self.self_attention = MultiHeadAttention(config, rotary=rotary)
        self.feed_forward_norm = norm_layer(config)
        self.feed_forward = FeedForward(config)
        self.dropout = nn.Dropout(config.dropout)
        stages = ("in", "after_self_attention", "out")
        self.residual = nn.ModuleDict({stage: Probe("position", "model") for stage in stages})

    def forward(self, stream: Tensor, allowed: Tensor, position_bias: Tensor | None = None) -> Tensor:
        """Apply the layer to the residual stream.

        Args:
            stream: [batch, position, model].
            allowed: ``True`` where a query may attend to a key, [batch, query, key].
            position_bias: Number to add to each score, [1, head, query, key].

        Returns:
            The residual stream after this layer, [batch, position, model].
        """
        stream = self.residual["in"](stream)
        stream = residual_connection(
            stream,
            lambda x: self.self_attention(x, x, allowed, position_bias),
            self.self_attention_norm,
            self.dropout,
            pre_norm=self.pre_norm,
        )
        stream = self.residual["after_self_attention"](stream)
        stream = residual_connection(
            stream, self.feed_forward, self.feed_forward_norm, self.dropout, pre_norm=self.pre_norm
        )
        return self.residual["out"](stream)


class Encoder(nn.Module):
    """Encoder stack: embedding, N layers and, for pre-norm, a final LayerNorm.

    Every token may attend to every token that is not padding. A model for masked tokens also has a projection to the
    vocabulary, as a decoder has.
    """

    def __init__(self, config: ModelConfig, table: nn.Embedding) -> None:
        super().__init__()
        self.pad_id = config.pad_id
        rotary = RotaryEncoding(config) if config.positions == "rotary" else None
        self.embedding = Embedding(config, table)
        self.position_bias = RelativePositionBias(config, causal=False) if config.positions == "relative" else None
        self.layers = nn.ModuleList(EncoderLayer(config, rotary=rotary) for _ in range(config.n_encoder_layers))
        self.final_norm = norm_layer(config) if config.norm == "pre" else None
        if config.kind == "encoder-only" and not config.n_classes:
            self.vocabulary_projection = vocabulary_projection(config, table)
            self.logits = Probe("position", "vocabulary")

    def forward(self, ids: Tensor) -> Tensor:
        """Encode token ids, [batch, position], into hidden states, [batch, position, model]."""
        n_positions = ids.shape[1]
        allowed = combined_mask(padding_mask(ids, self.pad_id), n_positions, causal=False)
        bias = None if self.position_bias is None else self.position_bias(n_positions, n_positions)
        stream = self.embedding(ids)
        for layer in self.layers:
            stream = layer(stream, allowed, bias)
        return stream if self.final_norm is None else self.final_norm(stream)

    def project(self, hidden: Tensor) -> Tensor:
        """Return the logits of a masked-token model, [batch, position, vocabulary]."""
        return self.logits(self.vocabulary_projection(hidden))
