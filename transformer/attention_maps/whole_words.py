"""Attention between whole words: the pieces into which a tokenizer has cut a word are put together; and where given
words stand among the tokens."""

from collections.abc import Sequence

import numpy as np

from transformer.runs.attention_view import AttentionView
from transformer.text.tokens import Token, TokenSequence
from transformer.text.word_spans import words_of

Span = tuple[int, int]  # first token, and the one after the last


def in_words(view: AttentionView) -> AttentionView:
    """The same heads with a row and a column a word: weights and scores [head, query word, key word].

    The weights of the pieces that are looked at are added up, the rows of the pieces that look are averaged (Clark et
    al. 2019, §4.1), so that every row still sums to 1. Of scores, which are no shares, both are averaged. Punctuation
    and special tokens stand alone. A word may look at another where one of its pieces may look at one of the other's.
    """
    rows, columns = spans(view.query), spans(view.key)
    sizes = np.array([end - begin for begin, end in columns])
    return AttentionView(
        name=view.name,
        stack=view.stack,
        layer=view.layer,
        kind=view.kind,
        weights=word_weights(view.weights, rows, columns),
        allowed=word_weights(view.allowed[None].astype(float), rows, columns)[0] > 0,
        scores=word_weights(view.scores, rows, columns) / sizes,
        query=_joined(view.query, rows),
        key=_joined(view.key, columns),
    )


def spans(tokens: TokenSequence) -> tuple[Span, ...]:
    """The words of a text in order, every special token as one of its own."""
    words = [(word.start, word.end) for word in words_of(tokens)]
    return tuple(sorted([*words, *((token.index, token.index + 1) for token in tokens if token.special)]))


def _joined(tokens: TokenSequence, parts: tuple[Span, ...]) -> TokenSequence:
    joined = (
        Token(
            index,
            tokens[begin].id,
            "".join(token.text for token in tokens.tokens[begin:end]),
            "".join(token.display for token in tokens.tokens[begin:end]),
            tokens[begin].special,
            tokens[begin].role,
            tokens[begin].first,
        )
        for index, (begin, end) in enumerate(parts)
    )
    return TokenSequence(tuple(joined), tokens.name)


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
    2019, §4.1), of ``weights`` [head, query, key]. Special tokens have no word: a row sums to what is left."""
    summed = np.stack([weights[:, :, begin:end].sum(axis=-1) for begin, end in keys], axis=-1)
    return np.stack([summed[:, begin:end].mean(axis=1) for begin, end in queries], axis=1)
