"""Rotary encoding with the choices of GPT-NeoX, Llama 3 and Gemma 3: a part of the channels, other bases, stretched."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn


@dataclass(frozen=True)
class RotaryScaling:
    """Llama 3's stretching of slow waves, so that longer texts fit (Grattafiori et al. 2024, §3.4.3).

    Waves longer than ``original_length / low`` positions are slowed down by ``factor``, waves shorter than
    ``original_length / high`` stay, those between are mixed.
    """

    factor: float
    low: float
    high: float
    original_length: int


@dataclass(frozen=True)
class Rotary:
    """Which channels are turned, and how fast: channel pair i by position · base^(−2i/width) / factor.

    An odd ``width`` turns one channel more (GPT-NeoX takes a share of the head, whatever comes out).
    """

    width: int
    base: float = 10_000.0
    factor: float = 1.0
    scaling: RotaryScaling | None = None

    @property
    def n_turned(self) -> int:
        """How many channels of a head are turned: pairs, so an even number."""
        return self.width + self.width % 2

    def frequencies(self, device: torch.device) -> Tensor:
        """Radians per position: [pair], in float32 as the families compute them."""
        frequency = 1.0 / (self.base ** (torch.arange(0, self.width, 2, dtype=torch.float, device=device) / self.width))
        frequency = frequency / self.factor
        if self.scaling is None:
            return frequency
        s, wavelength = self.scaling, 2 * math.pi / frequency
        share = ((s.original_length / wavelength - s.low) / (s.high - s.low)).clamp(0, 1)  # 1: as it was
        return (1 - share) * frequency / s.factor + share * frequency


class PartialRotaryEncoding(nn.Module):
    """Turns the pairs (c, c + n/2) of a head's first n channels, n = ``n_turned``; the others carry no position.

    Su et al. 2021, §3.2; a part of the channels only: Black et al. 2022 (GPT-NeoX), §2.1.1.
    """

    def __init__(self, rotary: Rotary) -> None:
        super().__init__()
        self.rotary = rotary

    def forward(self, heads: Tensor, start: int = 0) -> Tensor:  # [batch, head, position, channel]
        position = torch.arange(start, start + heads.shape[-2], dtype=torch.float, device=heads.device)
        angle = position[:, None] * self.rotary.frequencies(heads.device)  # [position, pair]
        cosine, sine = angle.cos(), angle.sin()
        turned, kept = heads[..., : self.rotary.n_turned], heads[..., self.rotary.n_turned :]
        first, second = turned.chunk(2, dim=-1)
        return torch.cat((first * cosine - second * sine, second * cosine + first * sine, kept), dim=-1)
