"""Strategies for choosing the next token: greedy decoding, sampling, beam search."""

import operator
from dataclasses import dataclass
from typing import Any, SupportsFloat

import torch
from torch import Tensor

from transformer.config import Rule, check_fields, integer, number


@dataclass(frozen=True)
class Greedy:
    """Greedy decoding: always choose the most likely token.

    Attributes:
        max_new_tokens: Largest number of tokens to generate; ``None`` for a number that suits the text.
    """

    max_new_tokens: int | None = None

    def __post_init__(self) -> None:
        check_fields(self, _LIMIT)


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
        check_fields(self, _OF_SAMPLING)


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
        check_fields(self, _OF_A_BEAM)


Strategy = Greedy | Sample | Beam


def _convert_first(rule: Rule) -> Rule:
    """Return the rule that reads numbers of NumPy and PyTorch as those of Python."""

    def of_any(value: Any) -> str:
        try:
            return rule(operator.index(value))
        except TypeError:  # not an integer
            return rule(float(value) if isinstance(value, SupportsFloat) else value)

    return of_any


_COUNT, _FROM_ZERO = _convert_first(integer(1)), _convert_first(integer(0))
_LIMIT: dict[str, Rule] = {"max_new_tokens": lambda most: "" if most is None else _COUNT(most)}
_OF_SAMPLING: dict[str, Rule] = _LIMIT | {
    "temperature": _convert_first(
        number("it must lie between 0.001 and 1000 (Greedy() is the limit 0)", lambda t: 1e-3 <= t <= 1e3)
    ),
    "top_k": _FROM_ZERO,
    "top_p": _convert_first(number("it must be above 0 and at most 1 (1 = no limit)", lambda p: 0 < p <= 1)),
}
_OF_A_BEAM: dict[str, Rule] = _LIMIT | {
    "width": _COUNT,
    "length_penalty": _convert_first(number("it must be at least 0 (0 = none)", lambda exponent: exponent >= 0)),
}


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
