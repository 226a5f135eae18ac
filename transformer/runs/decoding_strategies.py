"""How the next token is chosen: greedily, by sampling, or by beam search."""

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Greedy:
    """Always the most probable token; at most ``max_new_tokens`` of them (``None``: a number that suits the text)."""

    max_new_tokens: int | None = None

    def __post_init__(self) -> None:
        _check_limit(self.max_new_tokens)


@dataclass(frozen=True)
class Sample:
    """Draw from softmax(logits / temperature), restricted to the ``top_k`` most probable tokens (Fan et al. 2018) and
    to the smallest set with probability ``top_p`` (Holtzman et al. 2020, §3.1). ``top_k = 0`` and ``top_p = 1``
    restrict nothing.

    The generator is the call's own: the same seed gives the same text, whatever else runs.
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
    """Keep the ``width`` best unfinished texts at each step.

    A finished text Y is scored log p(Y) / lp(Y), lp(Y) = ((5 + |Y|) / 6)^length_penalty (Wu et al. 2016, §7);
    |Y| counts ``</s>``. The search ends when no unfinished text can overtake the best finished one.
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
    """Logits / temperature with everything outside top-k and top-p set to −∞: [..., vocabulary].

    Softmax of the result is what sampling draws from. top-p is taken after top-k; the token that crosses ``top_p``
    is kept.
    """
    logits = logits / temperature
    if 0 < top_k < logits.shape[-1]:
        # By place, not by value: of equal logits exactly k are kept, the first ones, as in greedy decoding.
        kept = logits.sort(dim=-1, descending=True, stable=True).indices[..., :top_k]
        dropped = torch.ones_like(logits, dtype=torch.bool).scatter(-1, kept, False)
        logits = logits.masked_fill(dropped, -torch.inf)
    if top_p < 1.0:
        descending, order = logits.sort(dim=-1, descending=True, stable=True)
        probabilities = descending.softmax(dim=-1)
        before = probabilities.cumsum(dim=-1) - probabilities  # mass of everything more probable
        dropped = torch.zeros_like(logits, dtype=torch.bool).scatter(-1, order, before >= top_p)
        logits = logits.masked_fill(dropped, -torch.inf)
    return logits


def length_penalty(length: int, exponent: float) -> float:
    """lp(Y) = ((5 + |Y|) / 6)^exponent (Wu et al. 2016, §7)."""
    return ((5 + length) / 6) ** exponent
