"""Scaling of rotary frequencies for longer texts: five methods, each a class with its formula.

θ_i are the frequencies of the pairs of channels, in radians per position (Su et al. 2021, §3.2). Each method computes
θ′_i from them: ``stretched``, [pair] → [pair]. Two also sharpen attention: they multiply rotated queries and keys by
``attention_factor`` m, so that scores grow by m² if every channel rotates.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class LinearScaling:
    """θ′_i = θ_i / s for every pair: positions are interpolated (Chen et al. 2023, §2.3)."""

    factor: float
    attention_factor = 1.0

    def stretched(self, frequency: Tensor, n_positions: int) -> Tensor:
        """Return θ′, [pair]."""
        return frequency / self.factor


@dataclass(frozen=True)
class Llama3Scaling:
    """Llama 3's scaling of low frequencies (Grattafiori et al. 2024, §3.4.3).

    Wavelengths above ``original_length / low`` positions are multiplied by ``factor``, those below
    ``original_length / high`` stay, and those between are interpolated.
    """

    factor: float
    low: float
    high: float
    original_length: int
    attention_factor = 1.0

    def stretched(self, frequency: Tensor, n_positions: int) -> Tensor:
        """Return θ′, [pair]."""
        wavelength = 2 * math.pi / frequency
        share = ((self.original_length / wavelength - self.low) / (self.high - self.low)).clamp(0, 1)  # 1: unchanged
        return (1 - share) * frequency / self.factor + share * frequency


@dataclass(frozen=True)
class Yarn:
    """YaRN: scaling by frequency, and a temperature (Peng et al. 2023, §3.2 and §3.4).

    θ′_i = (1 − γ_i) θ_i / s + γ_i θ_i with γ_i = 1 − clamp((i − kept) / (slowed − kept), 0, 1): high frequencies, up to
    pair ``kept``, stay; from pair ``slowed`` on they are divided by s, ``factor``. ``pair_that_turns`` computes both
    bounds, which need not be integers. (In the paper γ falls with the number of rotations, in the authors' code and in
    the checkpoints with i.) m = 0.1 ln s + 1 unless the config sets it.
    """

    factor: float
    kept: float
    slowed: float
    attention_factor: float

    def stretched(self, frequency: Tensor, n_positions: int) -> Tensor:
        """Return θ′, [pair]."""
        pair = torch.arange(len(frequency), dtype=torch.float, device=frequency.device)
        share = 1 - ((pair - self.kept) / (self.slowed - self.kept)).clamp(0, 1)  # 1: unchanged
        return (1 - share) * frequency / self.factor + share * frequency


def pair_that_turns(times: float, *, width: int, base: float, length: int) -> float:
    """Return the pair, possibly fractional, that rotates ``times`` times within ``length`` positions.

    i = width · ln(length / (2π · times)) / (2 ln base), from length · base^(−2i/width) = 2π · times (Peng et al. 2023,
    §3.2, solved for i).
    """
    return width * (math.log(length) - math.log(2 * math.pi) - math.log(times)) / (2 * math.log(base))


@dataclass(frozen=True)
class LongRope:
    """LongRoPE: θ′_i = θ_i / λ_i, with factors λ that were found by a search (Ding et al. 2024, §3).

    ``short`` and ``long`` are λ for texts of up to ``original_length`` tokens and for longer ones, [pair]. One of them
    applies to the whole text, so that one token beyond ``original_length`` changes all positions.
    m = √(1 + ln s / ln original_length) unless the config sets it, where s is the ratio of the lengths.
    """

    short: tuple[float, ...]
    long: tuple[float, ...]
    original_length: int
    attention_factor: float

    def factors(self, n_positions: int) -> tuple[float, ...]:
        """Return λ for a text of ``n_positions`` tokens."""
        return self.long if n_positions > self.original_length else self.short

    def stretched(self, frequency: Tensor, n_positions: int) -> Tensor:
        """Return θ′ for a text of ``n_positions`` tokens, [pair]."""
        return frequency / frequency.new_tensor(self.factors(n_positions))


@dataclass(frozen=True)
class FactorScaling:
    """θ′_i = θ_i / λ_i with the factors λ, [pair], that a GGUF file stores for Llama 3's scaling."""

    factors: tuple[float, ...]
    attention_factor = 1.0

    def stretched(self, frequency: Tensor, n_positions: int) -> Tensor:
        """Return θ′, [pair]."""
        return frequency / frequency.new_tensor(self.factors)


RotaryScaling = FactorScaling | LinearScaling | Llama3Scaling | Yarn | LongRope
