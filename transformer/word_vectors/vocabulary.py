"""Numbered words of a corpus, and the choice of those used in training."""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

_WORD = re.compile(r"\w+(?:['’-]\w+)*")


def words_of(text: str) -> list[str]:
    """Return the words of a text in lower case: letters and digits, with inner apostrophes and hyphens."""
    return _WORD.findall(text.lower())


@dataclass(frozen=True)
class Vocabulary:
    """``words``, most frequent first, and how often each occurs."""

    words: tuple[str, ...]
    counts: np.ndarray

    @classmethod
    def of(cls, texts: Iterable[str], *, min_count: int) -> "Vocabulary":
        """Return all words that occur at least ``min_count`` times; equally frequent ones are sorted by name."""
        found = Counter(word for text in texts for word in words_of(text))
        kept = sorted(((-count, word) for word, count in found.items() if count >= min_count))
        if not kept:
            raise ValueError(f"no word occurs {min_count} times; lower min_count or take more text")
        return cls(tuple(word for _, word in kept), np.array([-count for count, _ in kept]))

    def to_ids(self, texts: Iterable[str]) -> list[np.ndarray]:
        """Return the ids of each text's words, without words that are not in the vocabulary."""
        id_of = {word: id for id, word in enumerate(self.words)}
        return [np.array([id_of[word] for word in words_of(text) if word in id_of], dtype=np.int64) for text in texts]

    def keep_probabilities(self, threshold: float) -> np.ndarray:
        """Return the probability of keeping an occurrence of each word: min(1, √(t/f) + t/f).

        f is its share of all words. Frequent words tell little about their neighbours, and most of their occurrences
        are dropped anew in every epoch (Mikolov et al. 2013b, §2.3; the formula of their program, which differs a
        little from the paper's).
        """
        ratio = threshold / (self.counts / self.counts.sum())
        return np.minimum(1.0, np.sqrt(ratio) + ratio)

    def noise(self) -> np.ndarray:
        """Return the distribution of negative words: count^¾, normalised (Mikolov et al. 2013b, §2.2)."""
        weights = self.counts**0.75
        return weights / weights.sum()
