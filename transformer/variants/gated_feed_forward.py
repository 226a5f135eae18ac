"""The gated feed-forward layer (Shazeer 2020, "GLU Variants Improve Transformer", §2)."""

from collections.abc import Callable

from torch import Tensor, nn
from torch.nn import functional as F

from transformer.config import ModelConfig
from transformer.fast.writing_steps import plain_feed_forward, weights
from transformer.feed_forward import FeedForward
from transformer.probes import Probe


class GatedFeedForward(FeedForward):
    """FFN(x) = (f(x W_g) ⊙ x W₁) W₂: a gate f(x W_g) scales each hidden unit.

    The probe ``pre_activation`` holds x W_g, ``gate`` holds f(x W_g), and ``hidden`` the product.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config)
        self.gate_projection = nn.Linear(config.d_model, config.d_ff)  # W_g
        self.gate = Probe("position", "hidden")

    def forward(self, x: Tensor) -> Tensor:
        """Map [batch, position, model] to [batch, position, model]."""
        gate = self.gate(self.activation(self.pre_activation(self.gate_projection(x))))
        hidden = self.hidden(gate * self.input_projection(x))
        return self.output(self.output_projection(self.dropout(hidden)))


@plain_feed_forward.register(GatedFeedForward)
def _(layer: GatedFeedForward) -> Callable[[Tensor], Tensor]:
    """Compute the layer on its weights; a layer with a replaced part is called."""
    parts = layer.gate_projection, layer.input_projection, layer.output_projection
    if type(layer) is not GatedFeedForward or {type(part) for part in parts} != {nn.Linear}:
        return layer
    (gate, first, second), activation = map(weights, parts), layer.activation
    return lambda x: F.linear(activation(F.linear(x, *gate)) * F.linear(x, *first), *second)
