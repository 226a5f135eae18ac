"""Root-mean-square normalisation (Zhang & Sennrich 2019), in place of LayerNorm: no mean, no bias."""

import torch
from torch import Tensor, nn

from transformer.probes import Probe


class RMSNorm(nn.Module):
    """y = γ · x / √(mean(x²) + ε), over the last axis: [..., width] → [..., width].

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
