"""Attention maps of long texts in blocks of tokens, since 2,048 × 2,048 cells fit on no screen.

The overview has one cell per pair of blocks, and a window shows one pair in full.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import accumulate

import numpy as np

from transformer.runs.attention_view import AttentionView
from transformer.text.tokens import TokenSequence

SIZE = 64  # tokens in a block


def blocks_of(count: int, size: int = SIZE) -> tuple[range, ...]:
    """Return the tokens of each block; the last one may be shorter."""
    return tuple(range(first, min(first + size, count)) for first in range(0, count, size))


def largest_weights(view: AttentionView, head: int, size: int = SIZE) -> np.ndarray:
    """Return the largest weight of each pair of blocks, [query block, key block]."""
    weights = np.where(view.allowed, view.weights[head], 0.0)
    rows, columns = (np.arange(0, count, size) for count in weights.shape)
    return np.maximum.reduceat(np.maximum.reduceat(weights, rows, axis=0), columns, axis=1)


def may_attend(view: AttentionView, size: int = SIZE) -> np.ndarray:
    """Return whether any token of a block may attend to one of another, [query block, key block]."""
    rows, columns = (np.arange(0, count, size) for count in view.allowed.shape)
    return np.logical_or.reduceat(np.logical_or.reduceat(view.allowed, rows, axis=0), columns, axis=1)


def shares_of_blocks(view: AttentionView, head: int, query: int, size: int = SIZE) -> np.ndarray:
    """Return how much of its attention one row pays to each block, [key block]; the sum is 1."""
    return np.add.reduceat(view.weights[head, query], np.arange(0, len(view.key), size))


def block_of_interest(view: AttentionView, head: int, query: int, size: int = SIZE) -> int:
    """Return the block to which a row attends most, ignoring the first token, a sink of many heads."""
    shares = shares_of_blocks(view, head, query, size)
    shares[0] -= view.weights[head, query, 0]
    return int(shares.argmax())


def window_of(view: AttentionView, rows: range, columns: range) -> AttentionView:
    """Return a part of the map, with tokens numbered from 0. Its rows may sum to less than 1."""
    cut = np.s_[rows.start : rows.stop, columns.start : columns.stop]
    return replace(
        view,
        weights=view.weights[:, *cut],
        scores=view.scores[:, *cut],
        allowed=view.allowed[cut],
        query=_part(view.query, rows),
        key=_part(view.key, columns),
    )


def find_text(tokens: TokenSequence, text: str) -> tuple[int, ...]:
    """Return the tokens at which a text begins, ignoring case; the text may consist of several tokens."""
    wanted = text.strip().casefold()
    if not wanted:
        return ()
    pieces = [token.display if token.special else token.text.casefold() for token in tokens]
    ends = np.fromiter(accumulate(map(len, pieces)), dtype=np.int64)
    found = _occurrences("".join(pieces), wanted)
    return tuple(dict.fromkeys(int(np.searchsorted(ends, place, side="right")) for place in found))


def _part(tokens: TokenSequence, places: range) -> TokenSequence:
    return TokenSequence(tuple(replace(tokens[place], index=i) for i, place in enumerate(places)), tokens.name)


def _occurrences(text: str, wanted: str) -> Iterator[int]:
    place = text.find(wanted)
    while place >= 0:
        yield place
        place = text.find(wanted, place + 1)
