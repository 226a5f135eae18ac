"""The position-wise feed-forward layer (Vaswani et al. 2017, §3.3)."""

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from transformer.config import ModelConfig
from transformer.probes import Probe


def gelu_tanh(x: Tensor) -> Tensor:
    """Compute GELU by its tanh approximation (Hendrycks & Gimpel 2016, §2), which Gemma uses."""
    return F.gelu(x, approximate="tanh")


def gelu_new(x: Tensor) -> Tensor:
    """Compute ``gelu_tanh`` term by term as GPT-2 and T5 1.1 do; only the last digits differ."""
    return 0.5 * x * (1.0 + torch.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * torch.pow(x, 3.0))))


def quick_gelu(x: Tensor) -> Tensor:
    """Compute x · σ(1.702 x), the coarser approximation of GELU (Hendrycks & Gimpel 2016, §2)."""
    return x * torch.sigmoid(1.702 * x)


ACTIVATION_FUNCTIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": F.relu,
    "gelu": F.gelu,
    "gelu_tanh": gelu_tanh,
    "gelu_new": gelu_new,
    "quick_gelu": quick_gelu,
    "silu": F.silu,
    "tanh": torch.tanh,
}


class FeedForward(nn.Module):
    """Position-wise feed-forward layer: FFN(x) = f(x W₁ + b₁) W₂ + b₂.

    f is ReLU (the paper) or GELU (Hendrycks & Gimpel 2016). The same two matrices are applied at every position, and no
    position affects another.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.activation = ACTIVATION_FUNCTIONS[config.activation]
        self.input_projection = nn.Linear(config.d_model, config.d_ff)  # W₁, b₁
        self.output_projection = nn.Linear(config.d_ff, config.d_model)  # W₂, b₂
        self.dropout = nn.Dropout(config.dropout)
        self.pre_activation = Probe("position", "hidden")
        self.hidden = Probe("position", "hidden")
        self.output = Probe("position", "model")

    def forward(self, x: Tensor) -> Tensor:
        """Apply the layer: [batch, position, model] → [batch, position, hidden] → [batch, position, model]."""
        hidden = self.hidden(self.activation(self.pre_activation(self.input_projection(x))))
        return self.output(self.output_projection(self.dropout(hidden)))
