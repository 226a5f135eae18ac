"""Alignment of translated words with source words by cross-attention."""

from dataclasses import dataclass

import numpy as np

from transformer.attention_maps.whole_words import word_weights
from transformer.runs.attention_view import AttentionView
from transformer.runs.traces import Trace
from transformer.text.tokens import TokenSequence
from transformer.text.word_spans import Word, words_of


@dataclass(frozen=True)
class WordAlignment:
    """Cross-attention between words.

    Attributes:
        weights: [target word, source word]; each row sums to 1.
        special: ``True`` for ``</s>``, which is not a word: [source word].
    """

    weights: np.ndarray
    target: tuple[Word, ...]
    source: tuple[Word, ...]
    special: np.ndarray

    def best(self, *, specials: bool = True) -> np.ndarray:
        """Return the source word with the largest weight for each target word (the first if there are ties).

        ``specials=False`` chooses among real words only, if there are any.
        """
        weights = self.weights
        if not specials and not self.special.all():
            weights = np.where(self.special, -1.0, weights)
        return weights.argmax(axis=1)

    def second(self, best: np.ndarray) -> tuple[int | None, ...]:
        """Return, for each target word, the source word with the largest weight besides ``best``."""
        ranked = np.argsort(-self.weights, axis=1, kind="stable")
        rows = zip(ranked.tolist(), best.tolist(), strict=True)
        return tuple([next((column for column in row if column != first), None) for row, first in rows])

    @property
    def longest(self) -> int:
        """The target word with the most tokens."""
        return int(np.argmax([word.end - word.start for word in self.target]))

    @property
    def entropy(self) -> np.ndarray:
        """Return the entropy of each row in bits, [target word]; 0 if all weight is on one source word."""
        positive = np.where(self.weights > 0, self.weights, 1.0)
        return -(self.weights * np.log2(positive)).sum(axis=1) + 0.0


def word_alignment(
    view: AttentionView, *, written: TokenSequence | None = None, head: int | None = None
) -> WordAlignment:
    """Compute cross-attention between words.

    With the tokens Q_i of target word i and K_j of source word j,

        A[i, j] = 1/|Q_i| · Σ_{q ∈ Q_i} Σ_{k ∈ K_j} α[q, k],

    the mean over query tokens and the sum over key tokens, so that rows still sum to 1 (``word_weights``).

    Args:
        view: Cross-attention of one layer.
        written: ``Trace.prediction``, which names each row by the token that it predicted. By default a row is named by
            the token that it read, one position earlier: that aligns better for many models (Chen et al. 2020,
            "Accurate Word Alignment Induction from Neural Machine Translation").
        head: Index of a head; ``None`` for the mean of all heads.

    Raises:
        ValueError: If this is not cross-attention, or the head does not exist.
    """
    if view.kind != "cross":
        raise ValueError(f"{view.name} is {view.kind}-attention; words are aligned by cross-attention only")
    if head is not None and not 0 <= head < view.n_heads:
        raise ValueError(f"head is {head}, but {view.name} has heads 0 to {view.n_heads - 1}")
    if written is not None and len(written) != len(view.query):
        raise ValueError(f"written has {len(written)} tokens, but {view.name} has {len(view.query)} rows")
    attention = view.weights.mean(axis=0) if head is None else view.weights[head]
    seen = view.allowed.any(axis=0)
    source = tuple(word for word in _all_words(view.key) if seen[word.start : word.end].any())
    target = _all_words(view.query if written is None else written)
    rows, columns = ([(word.start, word.end) for word in words] for words in (target, source))
    weights = word_weights(attention[None], rows, columns)[0]
    special = np.array([view.key[word.start].special for word in source], dtype=bool)
    return WordAlignment(weights, target, source, special)


def align(trace: Trace, *, layer: int, head: int | None = None, when: str = "written") -> WordAlignment:
    """Compute ``word_alignment`` of a trace by the row that predicts a word or by the row that reads it.

    ``when`` is "written" for the row that predicted a word, or "read" for the row after it.
    """
    if when not in ("written", "read"):
        raise ValueError(f"when is {when!r}; choose written or read")
    view = trace.attention("decoder", layer=layer, kind="cross")
    return word_alignment(view, written=trace.prediction if when == "written" else None, head=head)


def _all_words(tokens: TokenSequence) -> tuple[Word, ...]:
    """Return the words of a sentence in order; each special token is a word of its own."""
    words = [Word(token.display, token.index, token.index + 1) for token in tokens if token.special]
    return tuple(sorted((*words, *words_of(tokens)), key=lambda word: word.start))
