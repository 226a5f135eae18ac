"""Rotary encoding with options of GPT-NeoX, Llama 3 and Gemma 3: partial, other bases, scaled."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from transformer.guests.rotary_scaling import RotaryScaling


@dataclass(frozen=True)
class Rotary:
    """Which channels rotate and how fast: channel pair i by position · θ_i, with θ_i = base^(−2i/width).

    ``scaling`` changes these frequencies. An odd ``width`` rotates one channel more (GPT-NeoX rotates a fraction of the
    head, which need not be even).
    """

    width: int
    base: float = 10_000.0
    scaling: RotaryScaling | None = None

    @property
    def n_turned(self) -> int:
        """Number of channels of a head that rotate; even, since channels rotate in pairs."""
        return self.width + self.width % 2

    @property
    def attention_factor(self) -> float:
        """Factor of rotated queries and keys: 1 unless the scaling defines another."""
        return 1.0 if self.scaling is None else self.scaling.attention_factor

    def frequencies(self, n_positions: int, device: torch.device | None = None) -> Tensor:
        """Return radians per position for a text of ``n_positions`` tokens, [pair], computed in float32."""
        frequency = 1.0 / (self.base ** (torch.arange(0, self.width, 2, dtype=torch.float, device=device) / self.width))
        return frequency if self.scaling is None else self.scaling.stretched(frequency, n_positions)


class PartialRotaryEncoding(nn.Module):
    """Rotation of the pairs (c, c + n/2) of a head's first n = ``n_turned`` channels.

    Su et al. 2021, §3.2; for part of the channels: Black et al. 2022 (GPT-NeoX), §2.1.1.
    """

    def __init__(self, rotary: Rotary) -> None:
        super().__init__()
        self.rotary = rotary

    def forward(  # heads: [batch, head, position, channel]
        self, heads: Tensor, start: int = 0, n_positions: int | None = None
    ) -> Tensor:
        """Rotate ``heads``; ``n_positions``: length of the text if it continues after them (``LongRope``)."""
        end = start + heads.shape[-2]
        position = torch.arange(start, end, dtype=torch.float, device=heads.device)
        angle = position[:, None] * self.rotary.frequencies(n_positions or end, heads.device)  # [position, pair]
        cosine, sine = (wave * self.rotary.attention_factor for wave in (angle.cos(), angle.sin()))
        turned, kept = heads[..., : self.rotary.n_turned], heads[..., self.rotary.n_turned :]
        first, second = turned.chunk(2, dim=-1)
        return torch.cat((first * cosine - second * sine, second * cosine + first * sine, kept), dim=-1)
