"""Strategies for choosing the next token: greedy decoding, sampling, beam search."""

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Greedy:
    """Greedy decoding: always choose the most likely token.

    Attributes:
        max_new_tokens: Largest number of tokens to generate; ``None`` for a number that suits the text.
    """

    max_new_tokens: int | None = None

    def __post_init__(self) -> None:
        _check_limit(self.max_new_tokens)


@dataclass(frozen=True)
class Sample:
    """Sampling from softmax(logits / temperature).

    The same seed gives the same text, whatever else runs, since each call has its own generator.

    Attributes:
        temperature: Divides the logits.
        top_k: Keep only this many of the most likely tokens (Fan et al. 2018); 0 keeps all.
        top_p: Keep the smallest set of tokens with this probability (Holtzman et al. 2020, §3.1); 1 keeps all.
    """

    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    seed: int = 0
    max_new_tokens: int | None = None

    def __post_init__(self) -> None:
        if not 1e-3 <= self.temperature <= 1e3:
            raise ValueError(
                f"temperature is {self.temperature}; it must lie between 0.001 and 1000 (use Greedy() for the limit 0)"
            )
        if self.top_k < 0:
            raise ValueError(f"top_k is {self.top_k}; it must be at least 0 (0 = no limit)")
        if not 0 < self.top_p <= 1:
            raise ValueError(f"top_p is {self.top_p}; it must be above 0 and at most 1 (1 = no limit)")
        _check_limit(self.max_new_tokens)


@dataclass(frozen=True)
class Beam:
    """Beam search: keep the ``width`` best unfinished texts at each step.

    A finished text Y has the score log p(Y) / lp(Y), lp(Y) = ((5 + |Y|) / 6)^length_penalty (Wu et al. 2016, §7); |Y|
    includes ``</s>``. The search ends when no unfinished text can overtake the best finished one.
    """

    width: int = 4
    length_penalty: float = 0.6
    max_new_tokens: int | None = None

    def __post_init__(self) -> None:
        if self.width < 1:
            raise ValueError(f"width is {self.width}; a beam keeps at least 1 text")
        if self.length_penalty < 0:
            raise ValueError(f"length_penalty is {self.length_penalty}; it must be at least 0 (0 = none)")
        _check_limit(self.max_new_tokens)


Strategy = Greedy | Sample | Beam


def _check_limit(max_new_tokens: int | None) -> None:
    if max_new_tokens is not None and max_new_tokens < 1:
        raise ValueError(f"max_new_tokens is {max_new_tokens}; it must be at least 1, or None")


def reshape_logits(logits: Tensor, *, temperature: float = 1.0, top_k: int = 0, top_p: float = 1.0) -> Tensor:
    """Divide logits by the temperature, and set those outside top-k and top-p to −∞: [..., vocabulary].

    Sampling draws from the softmax of the result. Top-p is applied after top-k; the token that crosses ``top_p`` is
    kept.
    """
    logits = logits / temperature
    if 0 < top_k < logits.shape[-1]:
        # By rank, not by value: exactly k logits are kept, and ties keep the first, as in greedy decoding.
        kept = logits.sort(dim=-1, descending=True, stable=True).indices[..., :top_k]
        dropped = torch.ones_like(logits, dtype=torch.bool).scatter(-1, kept, False)
        logits = logits.masked_fill(dropped, -torch.inf)
    if top_p < 1.0:
        descending, order = logits.sort(dim=-1, descending=True, stable=True)
        probabilities = descending.softmax(dim=-1)
        before = probabilities.cumsum(dim=-1) - probabilities  # total probability of all tokens that are more likely
        dropped = torch.zeros_like(logits, dtype=torch.bool).scatter(-1, order, before >= top_p)
        logits = logits.masked_fill(dropped, -torch.inf)
    return logits


def length_penalty(length: int, exponent: float) -> float:
    """Return lp(Y) = ((5 + |Y|) / 6)^exponent (Wu et al. 2016, §7)."""
    return ((5 + length) / 6) ** exponent
