"""Layer normalisation (Ba, Kiros & Hinton 2016, §3), spelled out, and the choice between it and RMSNorm."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from transformer.config import ModelConfig
from transformer.probes import Probe, takes_fast_path
from transformer.variants.rms_norm import RMSNorm


class LayerNorm(nn.Module):
    """y = γ · (x − μ) / √(σ² + ε) + β, over the last axis, with the biased variance σ² = mean((x − μ)²).

    [batch, position, model] → [batch, position, model]; the same numbers as ``torch.nn.LayerNorm``.
    The probe ``std`` shows the denominator √(σ² + ε). σ² is taken around the μ of the probe ``mean``, so an edit of
    ``mean`` moves ``std`` as well.
    """

    def __init__(self, config: ModelConfig, width: int | None = None) -> None:
        super().__init__()
        width = width or config.d_model
        self.epsilon = config.layer_norm_epsilon
        self.weight = nn.Parameter(torch.ones(width))  # γ
        self.bias = nn.Parameter(torch.zeros(width))  # β
        self.input = Probe("position", "model")
        self.mean = Probe("position")
        self.std = Probe("position")
        self.normalized = Probe("position", "model")
        self.output = Probe("position", "model")

    def forward(self, x: Tensor) -> Tensor:
        if takes_fast_path():
            return F.layer_norm(x, self.weight.shape, self.weight, self.bias, self.epsilon)
        x = self.input(x)
        mean = self.mean(x.mean(dim=-1))  # [batch, position]
        centred = x - mean.unsqueeze(-1)  # [batch, position, model]
        variance = centred.square().mean(dim=-1)  # spelled out: torch.var takes ten times as long on a CPU
        std = self.std(torch.sqrt(variance + self.epsilon))  # [batch, position]
        normalized = self.normalized(centred / std.unsqueeze(-1))
        return self.output(normalized * self.weight + self.bias)


def norm_layer(config: ModelConfig) -> LayerNorm | RMSNorm:
    """The normalisation that ``config.rms_norm`` asks for, as wide as the residual stream."""
    return RMSNorm(config.d_model, config.layer_norm_epsilon) if config.rms_norm else LayerNorm(config)
