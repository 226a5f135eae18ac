"""Layers that only guests have: these modules describe them, while the guest's own code computes."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from transformer.config import ModelConfig
from transformer.decoder import DecoderLayer
from transformer.feed_forward import FeedForward
from transformer.layer_norm import norm_layer
from transformer.probes import Probe


class GatedFeedForward(FeedForward):
    """FFN(x) = (f(x W_g) ⊙ x W₁) W₂: a gate f(x W_g) scales each hidden unit (Shazeer 2020, §2).

    The probe ``pre_activation`` holds x W_g, ``gate`` holds f(x W_g), and ``hidden`` the product.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config)
        self.gate_projection = nn.Linear(config.d_model, config.d_ff)  # W_g
        self.gate = Probe("position", "hidden")


class ParallelLayer(DecoderLayer):
    """x + attention(norm₁(x)) + feed-forward(norm₂(x)): both read the same input (GPT-NeoX, §2.1.2).

    The probe ``after_self_attention`` holds x + attention, although the feed-forward layer does not read it.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config, cross=False)


class SandwichLayer(DecoderLayer):
    """x + norm(sublayer(norm(x))): the output is normalised as well (Ding et al. 2021, §3.2; Gemma 2).

    ``self_attention_norm`` and ``feed_forward_norm`` come before the sub-layers, ``…_output_norm`` after them.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config, cross=False)
        self.self_attention_output_norm = norm_layer(config)
        self.feed_forward_output_norm = norm_layer(config)


class HalvedSinusoids(nn.Module):
    """Sines in the first half of the channels, cosines in the second: the order of Marian.

    Args:
        width: Number of channels; if it is odd, there is one more sine than there are cosines.
        offset: Row of position 0.
        steps: The frequencies are 10000^(−i / steps); by default, steps are half of the channels.
    """

    def __init__(self, width: int, *, offset: int = 0, steps: float | None = None) -> None:
        super().__init__()
        self.width, self.offset, self.steps = width, offset, width / 2 if steps is None else steps

    def forward(self, n_positions: int, start: int = 0) -> Tensor:
        """Return the encodings of positions ``start`` to ``start + n_positions − 1``."""
        position = torch.arange(start, start + n_positions, dtype=torch.float64)[:, None] + self.offset
        channel = torch.arange(self.width - self.width // 2, dtype=torch.float64)
        angle = position * torch.exp(channel * -(math.log(10_000.0) / self.steps))
        return torch.cat((angle.sin(), angle[:, : self.width // 2].cos()), dim=-1).float()[None]
