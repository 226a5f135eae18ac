"""Attention between whole words: the pieces into which a tokenizer has cut a word are put together."""

import numpy as np

from transformer.analysis.answers.leave_one_out import words_of
from transformer.roles.word_spans import Span, word_weights
from transformer.runs.attention_view import AttentionView
from transformer.text.tokens import Token, TokenSequence


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
