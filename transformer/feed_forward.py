"""The position-wise feed-forward layer (Vaswani et al. 2017, §3.3)."""

from torch import Tensor, nn
from torch.nn import functional as F

from transformer.config import ModelConfig
from transformer.probes import Probe

ACTIVATION_FUNCTIONS = {"relu": F.relu, "gelu": F.gelu}


class FeedForward(nn.Module):
    """FFN(x) = f(x W₁ + b₁) W₂ + b₂ with f = ReLU (the paper) or GELU (Hendrycks & Gimpel 2016).

    Every position goes through the same two matrices, and no position sees another:
    [batch, position, model] → [batch, position, hidden] → [batch, position, model].
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
        hidden = self.hidden(self.activation(self.pre_activation(self.input_projection(x))))
        return self.output(self.output_projection(self.dropout(hidden)))
