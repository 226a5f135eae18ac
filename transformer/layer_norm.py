"""Layer normalisation (Ba, Kiros & Hinton 2016, §3) and RMSNorm, which later models use instead."""

import torch
from torch import Tensor, nn

from transformer.config import ModelConfig
from transformer.probes import Probe, current_shortcut


class LayerNorm(nn.Module):
    """LayerNorm over the last axis: y = γ · (x − μ) / √(σ² + ε) + β.

    σ² = mean((x − μ)²) is the biased variance; the results equal those of ``torch.nn.LayerNorm``. The probe ``std``
    shows the denominator √(σ² + ε). σ² is computed around the μ of the probe ``mean``, so an edit of ``mean`` also
    changes ``std``.
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
        """Normalise each position: [batch, position, model] → [batch, position, model]."""
        shortcut = current_shortcut()  # the same result, computed faster: transformer/fast/
        return self.normalise(x) if shortcut is None else shortcut.layer_norm(self, x)

    def normalise(self, x: Tensor) -> Tensor:
        """Compute the formula step by step, with a probe at each step."""
        return self.output(self.steps(self.input(x)))

    @property
    def step_probes(self) -> tuple[Probe, ...]:
        """The probes between ``input`` and ``output``."""
        return self.mean, self.std, self.normalized

    def steps(self, x: Tensor) -> Tensor:
        """Compute everything between the probes ``input`` and ``output``."""
        mean = self.mean(x.mean(dim=-1))  # [batch, position]
        centred = x - mean.unsqueeze(-1)  # [batch, position, model]
        variance = centred.square().mean(dim=-1)  # torch.var takes ten times as long on a CPU
        std = self.std(torch.sqrt(variance + self.epsilon))  # [batch, position]
        normalized = self.normalized(centred / std.unsqueeze(-1))
        return normalized * self.weight + self.bias


class RMSNorm(nn.Module):
    """RMSNorm over the last axis: y = γ · x / √(mean(x²) + ε) (Zhang & Sennrich 2019).

    There is neither a mean nor a bias. The probe ``mean_square`` shows mean(x²). Multiplying by the reciprocal root
    rounds as the original implementations do.
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
        """Normalise the last axis: [..., width] → [..., width]."""
        return self.output(self.steps(self.input(x)))

    @property
    def step_probes(self) -> tuple[Probe, ...]:
        """The probes between ``input`` and ``output``."""
        return self.mean_square, self.normalized

    def steps(self, x: Tensor) -> Tensor:
        """Compute everything between the probes ``input`` and ``output``."""
        mean_square = self.mean_square(x.square().mean(dim=-1))  # [...]
        normalized = self.normalized(x * torch.rsqrt(mean_square + self.epsilon).unsqueeze(-1))
        return normalized * self.weight


def norm_layer(config: ModelConfig) -> LayerNorm | RMSNorm:
    """Create the normalisation that ``config.rms_norm`` selects, as wide as the residual stream."""
    return RMSNorm(config.d_model, config.layer_norm_epsilon) if config.rms_norm else LayerNorm(config)
