"""What follows the last layer in guests: a token head, a classifier, or only pooling."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from transformer.probes import Probe


class ScaledProjection(nn.Linear):
    """logits = cap · tanh(((x · scale) Wᵀ + b) / cap), where a family may lack some of these parts.

    ``scale`` is 1/√d_model in T5 if E and W are tied (Raffel et al. 2020); ``cap`` is from Gemma 2 (2024, §2).
    """

    def __init__(self, width: int, vocabulary_size: int, *, bias: bool, scale: float, cap: float | None) -> None:
        super().__init__(width, vocabulary_size, bias=bias)
        self.scale, self.cap = scale, cap

    def forward(self, hidden: Tensor) -> Tensor:
        """Return logits [batch, position, vocabulary]."""
        logits = super().forward(hidden * self.scale)
        return logits if self.cap is None else self.cap * torch.tanh(logits / self.cap)


class TokenHead(nn.Module):
    """BERT's masked-token head (Devlin et al. 2019), not linear in x: logits = norm(f(x W + b)) Eᵀ + c."""

    def __init__(
        self, dense: nn.Module, activation: Callable[[Tensor], Tensor], norm: nn.Module, projection: nn.Module
    ):
        super().__init__()
        self.dense, self.activation, self.norm, self.projection = dense, activation, norm, projection

    def forward(self, hidden: Tensor) -> Tensor:
        """Return logits [batch, position, vocabulary]."""
        return self.projection(self.norm(self.activation(self.dense(hidden))))


class Pooling(nn.Module):
    """One vector for all real positions, [batch, model] (Sentence-BERT, Reimers & Gurevych 2019, §3).

    ``kind`` is "mean", "first" (the first position) or "max" (the maximum of each channel).
    """

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind = kind
        self.vector = Probe("model")

    def forward(self, hidden: Tensor, real: Tensor) -> Tensor:
        """Pool hidden [batch, position, model] over the positions where real [batch, position] is true."""
        if self.kind == "first":
            return self.vector(hidden[:, 0])
        if self.kind == "max":
            return self.vector(hidden.masked_fill(~real[..., None], -torch.inf).amax(dim=1))
        weight = real[..., None].to(hidden.dtype)
        return self.vector((hidden * weight).sum(dim=1) / weight.sum(dim=1))
