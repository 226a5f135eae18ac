"""Token n-gram models with interpolated modified Kneser-Ney smoothing (Chen & Goodman 1999, §4.1.6).

A baseline for language models: how good counting alone is on the same tokens.
"""

import math
from collections import Counter
from collections.abc import Collection, Iterable, Sequence

from transformer.text.tokenizer import START_ID

_USUAL_DISCOUNTS = (0.0, 0.5, 1.0, 1.5)


class KneserNey:
    """N-gram model: p(w | u) = (c(u w) − D(c(u w))) / c(u ·) + γ(u) · p(w | u without its first token).

    ``u`` are the order − 1 tokens before ``w``, and γ(u) = Σ_w D(c(u w)) / c(u ·), so that everything sums to 1. At the
    highest order c counts occurrences; below it, c(u w) is the number of different tokens v that were seen before it,
    as v u w. If ``u`` was never seen, p(w | u) is that of the shorter context. Below the unigrams is 1 / |vocabulary|:
    no token of the vocabulary has probability 0.

    Args:
        sequences: Tokens to be predicted (``</s>`` at their end, no ``<s>``); contexts that reach beyond the beginning
            are filled with ``<s>``.
        vocabulary: Every token that can be predicted.
        order: 1 for a unigram model, 3 for a trigram model.
    """

    def __init__(self, sequences: Iterable[Sequence[int]], vocabulary: Collection[int], order: int = 3) -> None:
        if order < 1:
            raise ValueError(f"order is {order}; an n-gram has at least 1 token")
        self.order = order
        self.vocabulary = frozenset(vocabulary)
        counts = Counter(ngram for tokens in sequences for ngram in _ngrams(tokens, order))
        if not counts:
            raise ValueError("there is nothing to count: no token was given")
        if unknown := {ngram[-1] for ngram in counts} - self.vocabulary:
            raise ValueError(f"token {min(unknown)} occurs in the sequences but not in the vocabulary")
        levels = [_Level(counts)]
        while len(levels) < order:
            counts = Counter(ngram[1:] for ngram in counts)  # each distinct n-gram counts once
            levels.append(_Level(counts))
        self._levels = levels[::-1]  # unigrams first

    def probability(self, token: int, context: Sequence[int] = ()) -> float:
        """Return p(token | context); only the last order − 1 tokens of a context count."""
        probability = 1 / len(self.vocabulary) if token in self.vocabulary else 0.0
        for length, level in enumerate(self._levels[: len(context) + 1]):
            seen = tuple(context[len(context) - length :])
            if seen not in level.totals:
                break  # longer contexts were not seen either
            probability = level.discounted_share(seen, token) + level.given_down[seen] * probability
        return probability

    def log_probability(self, tokens: Sequence[int]) -> float:
        """Return Σ log p(token | the tokens before it), in nats."""
        return sum(math.log(self.probability(ngram[-1], ngram[:-1])) for ngram in _ngrams(tokens, self.order))


class _Level:
    """Counts of one length of n-grams: ``totals`` c(u ·) and ``given_down`` γ(u), by context u."""

    def __init__(self, counts: Counter[tuple[int, ...]]) -> None:
        self.counts = counts
        self.discounts = discounts(counts.values())
        self.totals: Counter[tuple[int, ...]] = Counter()
        held_back: Counter[tuple[int, ...]] = Counter()
        for ngram, count in counts.items():
            self.totals[ngram[:-1]] += count
            held_back[ngram[:-1]] += self.discounts[min(count, 3)]
        self.given_down = {context: mass / self.totals[context] for context, mass in held_back.items()}

    def discounted_share(self, context: tuple[int, ...], token: int) -> float:
        """Return (c(u w) − D(c(u w))) / c(u ·)."""
        count = self.counts.get((*context, token), 0)
        return (count - self.discounts[min(count, 3)]) / self.totals[context]


def discounts(counts: Iterable[int]) -> tuple[float, float, float, float]:
    """Return D(0) = 0, D(1), D(2) and D(3 or more), from how many n-grams occur 1, 2, 3 and 4 times.

    D(k) = k − (k + 1) · Y · n_(k+1) / n_k with Y = n_1 / (n_1 + 2 n_2) (eq. 26). If the data are too few for that (some
    n_k is 0, or a discount leaves 0…k), 0.5, 1 and 1.5.
    """
    occurring = Counter(count for count in counts if count <= 4)
    if any(occurring[k] == 0 for k in (1, 2, 3, 4)):
        return _USUAL_DISCOUNTS
    y = occurring[1] / (occurring[1] + 2 * occurring[2])
    found = tuple(k - (k + 1) * y * occurring[k + 1] / occurring[k] for k in (1, 2, 3))
    return (0.0, *found) if all(0 <= d <= k for k, d in enumerate(found, start=1)) else _USUAL_DISCOUNTS


def _ngrams(tokens: Sequence[int], order: int) -> Iterable[tuple[int, ...]]:
    """Yield one n-gram per token: the token after the ``order`` − 1 tokens before it."""
    padded = (START_ID,) * (order - 1) + tuple(tokens)
    return (padded[i : i + order] for i in range(len(tokens)))
