"""Decoder layers that add to the residual stream in another order: in parallel, or normalised twice."""

from torch import Tensor

from transformer.config import ModelConfig
from transformer.decoder import DecoderLayer
from transformer.layer_norm import norm_layer


class _ReorderedLayer(DecoderLayer):
    """A layer without cross-attention whose ``add`` defines how its sub-layers add to the residual stream."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config, cross=False)

    def forward(
        self,
        stream: Tensor,  # [batch, position, model]
        allowed: Tensor,  # [batch, position, position]
        memory: Tensor | None = None,
        memory_allowed: Tensor | None = None,
        position_bias: Tensor | None = None,
    ) -> Tensor:
        stream = self.residual["in"](stream)
        normed = self.self_attention_norm(stream)
        attended = self.self_attention(normed, normed, allowed, position_bias)
        return self.residual["out"](self.add(stream, attended))

    def add(self, stream: Tensor, attended: Tensor) -> Tensor:
        """Return the residual stream after the layer, from the one before it and the output of attention."""
        raise NotImplementedError


class ParallelLayer(_ReorderedLayer):
    """x + attention(norm₁(x)) + feed-forward(norm₂(x)): both read the same input (GPT-NeoX, §2.1.2).

    The probe ``after_self_attention`` holds x + attention, although the feed-forward layer does not read it.
    """

    def add(self, stream: Tensor, attended: Tensor) -> Tensor:
        """Add the output of both sub-layers."""
        fed_forward = self.feed_forward(self.feed_forward_norm(stream))
        return self.residual["after_self_attention"](stream + attended) + fed_forward


class SandwichLayer(_ReorderedLayer):
    """x + norm(sublayer(norm(x))): the output is normalised as well (Ding et al. 2021, §3.2; Gemma 2).

    ``self_attention_norm`` and ``feed_forward_norm`` come before the sub-layers, ``…_output_norm`` after them.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config)
        self.self_attention_output_norm = norm_layer(config)
        self.feed_forward_output_norm = norm_layer(config)

    def add(self, stream: Tensor, attended: Tensor) -> Tensor:
        """Add the normalised output of each sub-layer."""
        stream = self.residual["after_self_attention"](stream + self.self_attention_output_norm(attended))
        fed_forward = self.feed_forward(self.feed_forward_norm(stream))
        return stream + self.feed_forward_output_norm(fed_forward)
