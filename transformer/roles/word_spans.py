"""Where the words of an annotated sentence stand among the tokens that a model reads, and attention between words."""

from collections.abc import Sequence

import numpy as np

from transformer.text.tokens import TokenSequence

Span = tuple[int, int]  # first token, and the one after the last


def word_spans(tokens: TokenSequence, words: Sequence[str]) -> tuple[Span, ...] | None:
    """The tokens of each word, in order; ``None`` where the tokens do not spell these words (an alphabet that the model
    lacks). Case does not count: some models read lower case only."""
    text, owner = "", []
    for token in tokens:
        if not token.special:
            folded = token.text.casefold()
            text += folded
            owner += [token.index] * len(folded)
    spans, at = [], 0
    for word in words:
        begin = text.find(word.casefold(), at)
        if begin < 0 or text[at:begin].strip():
            return None
        at = begin + len(word.casefold())
        spans.append((owner[begin], owner[at - 1] + 1))
    return tuple(spans)


def word_weights(weights: np.ndarray, queries: Sequence[Span], keys: Sequence[Span]) -> np.ndarray:
    """[head, query word, key word]: the mean over the tokens that look, the sum over those looked at (Clark et al.
    2019,
    §4.1), of ``weights`` [head, query, key]. Special tokens have no word: a row sums to what is left."""
    summed = np.stack([weights[:, :, begin:end].sum(axis=-1) for begin, end in keys], axis=-1)
    return np.stack([summed[:, begin:end].mean(axis=1) for begin, end in queries], axis=1)
