"""How rotary waves are stretched so that longer texts fit: five ways, each a class with its formula.

θ_i are the frequencies of the pairs of channels, in radians per position (Su et al. 2021, §3.2). Each way makes θ′_i of
them: ``stretched``, [pair] → [pair]. Two also sharpen attention: what is turned is multiplied by ``attention_factor``
m, queries and keys alike, so that scores grow by m² where every channel is turned.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class LinearScaling:
    """θ′_i = θ_i / s for every pair: positions are squeezed together (Chen et al. 2023, §2.3)."""

    factor: float
    attention_factor = 1.0

    def stretched(self, frequency: Tensor, n_positions: int) -> Tensor:
        return frequency / self.factor


@dataclass(frozen=True)
class Llama3Scaling:
    """Llama 3's stretching of slow waves (Grattafiori et al. 2024, §3.4.3).

    Waves longer than ``original_length / low`` positions are slowed down by ``factor``, waves shorter than
    ``original_length / high`` stay, those between are mixed.
    """

    factor: float
    low: float
    high: float
    original_length: int
    attention_factor = 1.0

    def stretched(self, frequency: Tensor, n_positions: int) -> Tensor:
        wavelength = 2 * math.pi / frequency
        share = ((self.original_length / wavelength - self.low) / (self.high - self.low)).clamp(0, 1)  # 1: as it was
        return (1 - share) * frequency / self.factor + share * frequency


@dataclass(frozen=True)
class Yarn:
    """YaRN: frequencies by parts, and a temperature (Peng et al. 2023, §3.2 and §3.4).

    θ′_i = (1 − γ_i) θ_i / s + γ_i θ_i with γ_i = 1 − clamp((i − kept) / (slowed − kept), 0, 1): fast waves, up to pair
    ``kept``, stay; from pair ``slowed`` on they are slowed down by s, ``factor``. Both are found by ``pair_that_turns``
    and need not be whole. (The paper lets γ fall with the number of turns, its authors' code with i; so do the
    checkpoints.) m = 0.1 ln s + 1 unless the config says another.
    """

    factor: float
    kept: float
    slowed: float
    attention_factor: float

    def stretched(self, frequency: Tensor, n_positions: int) -> Tensor:
        pair = torch.arange(len(frequency), dtype=torch.float, device=frequency.device)
        share = 1 - ((pair - self.kept) / (self.slowed - self.kept)).clamp(0, 1)  # 1: as it was
        return (1 - share) * frequency / self.factor + share * frequency


def pair_that_turns(times: float, *, width: int, base: float, length: int) -> float:
    """The pair, a fraction, whose wave turns ``times`` times within ``length`` positions.

    i = width · ln(length / (2π · times)) / (2 ln base), from length · base^(−2i/width) = 2π · times (Peng et al. 2023,
    §3.2, solved for i).
    """
    return width * (math.log(length) - math.log(2 * math.pi) - math.log(times)) / (2 * math.log(base))


@dataclass(frozen=True)
class LongRope:
    """LongRoPE: θ′_i = θ_i / λ_i, with factors λ that were searched for (Ding et al. 2024, §3).

    ``short``, ``long``: λ of texts up to ``original_length`` tokens and of longer ones, [pair]. The whole text is
    turned by one of them: a token more than ``original_length`` moves all that stand before it.
    m = √(1 + ln s / ln original_length) unless the config says another, s being by how much longer texts may be.
    """

    short: tuple[float, ...]
    long: tuple[float, ...]
    original_length: int
    attention_factor: float

    def factors(self, n_positions: int) -> tuple[float, ...]:
        """λ of a text of ``n_positions`` tokens."""
        return self.long if n_positions > self.original_length else self.short

    def stretched(self, frequency: Tensor, n_positions: int) -> Tensor:
        return frequency / frequency.new_tensor(self.factors(n_positions))


@dataclass(frozen=True)
class FactorScaling:
    """θ′_i = θ_i / λ_i, with the factors λ that a GGUF file holds, [pair]: so it keeps Llama 3's way."""

    factors: tuple[float, ...]
    attention_factor = 1.0

    def stretched(self, frequency: Tensor, n_positions: int) -> Tensor:
        return frequency / frequency.new_tensor(self.factors)


RotaryScaling = FactorScaling | LinearScaling | Llama3Scaling | Yarn | LongRope
