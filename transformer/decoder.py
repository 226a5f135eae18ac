"""The decoder: causal self-attention, cross-attention, feed-forward (Vaswani et al. 2017, §3.1)."""

from torch import Tensor, nn
from torch.nn import functional as F

from transformer.attention import MultiHeadAttention
from transformer.config import ModelConfig
from transformer.embedding import Embedding, vocabulary_projection
from transformer.feed_forward import FeedForward
from transformer.layer_norm import norm_layer
from transformer.masks import combined_mask, padding_mask
from transformer.positions import RelativePositionBias, RotaryEncoding
from transformer.probes import Probe
from transformer.residual import residual_connection


class DecoderLayer(nn.Module):
    """One decoder layer: causal self-attention, cross-attention (if ``cross``), feed-forward."""

    def __init__(self, config: ModelConfig, *, cross: bool = True, rotary: RotaryEncoding | None = None) -> None:
        super().__init__()
        self.pre_norm = config.norm == "pre"
        self.self_attention_norm = norm_layer(config)
        self.self_attention = MultiHeadAttention(config, rotary=rotary)
        self.cross_attention_norm = norm_layer(config) if cross else None
        self.cross_attention = MultiHeadAttention(config) if cross else None
        self.feed_forward_norm = norm_layer(config)
        self.feed_forward = FeedForward(config)
        self.dropout = nn.Dropout(config.dropout)
        stages = ("in", "after_self_attention", *(("after_cross_attention",) if cross else ()), "out")
        self.residual = nn.ModuleDict({stage: Probe("position", "model") for stage in stages})

    def forward(
        self,
        stream: Tensor,  # [batch, target position, model]
        allowed: Tensor,  # [batch, target position, target position]
        memory: Tensor | None = None,  # [batch, source position, model]
        memory_allowed: Tensor | None = None,  # [batch, target position, source position]
        position_bias: Tensor | None = None,
    ) -> Tensor:
        """Apply the layer to the residual stream.

        Args:
            stream: The residual stream before this layer.
            allowed: ``True`` where a target position may attend to another.
            memory: The output of the encoder, for cross-attention.
            memory_allowed: ``True`` where a target position may attend to a source position.
            position_bias: Number to add to each score of self-attention, [1, head, query, key].

        Returns:
            The residual stream after this layer, [batch, target position, model].
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
        cross_attention, norm = self.cross_attention, self.cross_attention_norm
        if cross_attention is not None and norm is not None:
            stream = residual_connection(
                stream,
                lambda x: cross_attention(x, memory, memory_allowed),
                norm,
                self.dropout,
                pre_norm=self.pre_norm,
            )
            stream = self.residual["after_cross_attention"](stream)
        stream = residual_connection(
            stream, self.feed_forward, self.feed_forward_norm, self.dropout, pre_norm=self.pre_norm
        )
        return self.residual["out"](stream)


class Decoder(nn.Module):
    """Decoder stack: embedding, N layers, final LayerNorm (pre-norm only), projection to the vocabulary."""

    def __init__(self, config: ModelConfig, table: nn.Embedding) -> None:
        super().__init__()
        cross = config.has_encoder
        self.pad_id = config.pad_id
        rotary = RotaryEncoding(config) if config.positions == "rotary" else None
        self.embedding = Embedding(config, table)
        self.position_bias = RelativePositionBias(config, causal=True) if config.positions == "relative" else None
        self.layers = nn.ModuleList(
            DecoderLayer(config, cross=cross, rotary=rotary) for _ in range(config.n_decoder_layers)
        )
        self.final_norm = norm_layer(config) if config.norm == "pre" else None
        self.vocabulary_projection = vocabulary_projection(config, table)
        self.logits = Probe("position", "vocabulary")

    def forward(
        self,
        ids: Tensor,  # [batch, position]
        memory: Tensor | None = None,  # [batch, source position, model]
        memory_keys_allowed: Tensor | None = None,  # [batch, source position]
        start: int = 0,  # position of the first id
    ) -> Tensor:  # [batch, position, model]
        """Decode token ids into hidden states, from which ``project`` computes logits.

        Args:
            ids: Token ids of the target.
            memory: The output of the encoder, for cross-attention.
            memory_keys_allowed: ``True`` for the source tokens that are not padding.
            start: Position of the first id. Earlier positions, without padding, are in a cache.

        Returns:
            The output of the last layer, after the final norm if there is one, [batch, position, model].
        """
        n_queries = ids.shape[1]
        keys_allowed = F.pad(padding_mask(ids, self.pad_id), (start, 0), value=True)  # [batch, all positions]
        allowed = combined_mask(keys_allowed, n_queries, causal=True)
        memory_allowed = None
        if memory_keys_allowed is not None:
            memory_allowed = combined_mask(memory_keys_allowed, n_queries, causal=False)
        bias = None if self.position_bias is None else self.position_bias(n_queries, start + n_queries)
        stream = self.embedding(ids, start)
        for layer in self.layers:
            stream = layer(stream, allowed, memory, memory_allowed, bias)
        return stream if self.final_norm is None else self.final_norm(stream)

    def project(self, hidden: Tensor) -> Tensor:
        """Return the logits, [batch, position, vocabulary], of hidden states [batch, position, model]."""
        return self.logits(self.vocabulary_projection(hidden))
