"""Layer normalisation (Ba, Kiros & Hinton 2016, §3), spelled out, and RMSNorm, which later models have in its place."""

import torch
from torch import Tensor, nn

from transformer.config import ModelConfig
from transformer.probes import Probe, current_shortcut


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
        shortcut = current_shortcut()  # the same, faster: transformer/fast/
        return self.normalise(x) if shortcut is None else shortcut.layer_norm(self, x)

    def normalise(self, x: Tensor) -> Tensor:
        """The formula, every step of it shown."""
        x = self.input(x)
        mean = self.mean(x.mean(dim=-1))  # [batch, position]
        centred = x - mean.unsqueeze(-1)  # [batch, position, model]
        variance = centred.square().mean(dim=-1)  # spelled out: torch.var takes ten times as long on a CPU
        std = self.std(torch.sqrt(variance + self.epsilon))  # [batch, position]
        normalized = self.normalized(centred / std.unsqueeze(-1))
        return self.output(normalized * self.weight + self.bias)


class RMSNorm(nn.Module):
    """y = γ · x / √(mean(x²) + ε), over the last axis: [..., width] → [..., width] (Zhang & Sennrich 2019): no mean, no
    bias.

    The probe ``mean_square`` shows mean(x²). Multiplying by the reciprocal root rounds as the families' own code does.
    """

    def __init__(self, width: int, epsilon: float, *axes: str) -> None:
        super().__init__()
        axes = axes or ("position",)
        last = "channel" if "head" in axes else "model"
        self.epsilon = epsilon
        self.weight = nn.Parameter(torch.ones(width))  # γ
        self.input = Probe(*axes, last)
        self.mean_square = Probe(*axes)
        self.normalized = Probe(*axes, last)
        self.output = Probe(*axes, last)

    def forward(self, x: Tensor) -> Tensor:
        x = self.input(x)
        mean_square = self.mean_square(x.square().mean(dim=-1))  # [...]
        normalized = self.normalized(x * torch.rsqrt(mean_square + self.epsilon).unsqueeze(-1))
        return self.output(normalized * self.weight)


def norm_layer(config: ModelConfig) -> LayerNorm | RMSNorm:
    """The normalisation that ``config.rms_norm`` asks for, as wide as the residual stream."""
    return RMSNorm(config.d_model, config.layer_norm_epsilon) if config.rms_norm else LayerNorm(config)
