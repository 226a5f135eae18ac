"""Attention between whole words, whose tokens are combined, and the spans of given words in a text."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from transformer.runs.attention_view import AttentionView
from transformer.text.tokens import Token, TokenSequence
from transformer.text.word_spans import words_of

Span = tuple[int, int]  # first token, and the one after the last


def merge_into_words(view: AttentionView) -> AttentionView:
    """Return the same heads with one row and one column per word.

    Weights of key tokens are summed and rows of query tokens are averaged (Clark et al. 2019, §4.1), so that every row
    still sums to 1. Scores, which are not shares, are averaged over both. Punctuation and special tokens stay separate.
    A word may attend to another if one of its tokens may attend to a token of the other.

    Returns:
        Weights and scores, [head, query word, key word].
    """
    rows, columns = spans(view.query), spans(view.key)
    sizes = np.array([end - begin for begin, end in columns])
    return replace(
        view,
        weights=word_weights(view.weights, rows, columns),
        allowed=word_weights(view.allowed[None].astype(float), rows, columns)[0] > 0,
        scores=word_weights(view.scores, rows, columns) / sizes,
        query=_join_tokens(view.query, rows),
        key=_join_tokens(view.key, columns),
    )


def spans(tokens: TokenSequence) -> tuple[Span, ...]:
    """Return the spans of the words of a text in order; every special token is a span of its own."""
    words = [(word.start, word.end) for word in words_of(tokens)]
    return tuple(sorted([*words, *((token.index, token.index + 1) for token in tokens if token.special)]))


def _join_tokens(tokens: TokenSequence, parts: tuple[Span, ...]) -> TokenSequence:
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
    """Return the tokens of each word, in order, or ``None`` if the tokens do not spell these words.

    That happens if the model lacks an alphabet. Case is ignored, since some models read lower case only.
    """
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
    """Combine ``weights`` [head, query, key] into [head, query word, key word].

    Weights are averaged over query tokens and summed over key tokens (Clark et al. 2019, §4.1). Special tokens belong
    to no word, so a row sums to 1 minus their weight.
    """
    summed = np.stack([weights[:, :, begin:end].sum(axis=-1) for begin, end in keys], axis=-1)
    return np.stack([summed[:, begin:end].mean(axis=1) for begin, end in queries], axis=1)
