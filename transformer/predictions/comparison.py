"""Comparison of two runs: corresponding tokens, differences between attention maps, changed words.

It also covers the heads that differ most, and the layers in which the vectors of the same word diverge.
"""

import re
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from typing import NamedTuple

import numpy as np

from transformer.runs.attention_view import AttentionView
from transformer.runs.traces import Trace
from transformer.text.tokens import Token, TokenSequence


@dataclass(frozen=True)
class Alignment:
    """Corresponding tokens of two sequences.

    Attributes:
        first: First sequence.
        second: Second sequence.
        pairs: (position in the first, position in the second), in order.
        equal: For each pair, whether both tokens have the same text; otherwise one replaces the other.
    """

    first: TokenSequence
    second: TokenSequence
    pairs: tuple[tuple[int, int], ...]
    equal: tuple[bool, ...]

    @property
    def positions(self) -> tuple[np.ndarray, np.ndarray]:
        """Corresponding positions in the first and in the second sequence, [pair] each."""
        both = np.array(self.pairs, dtype=np.int64).reshape(-1, 2)
        return both[:, 0], both[:, 1]

    @property
    def merged(self) -> tuple[tuple[int | None, int | None], ...]:
        """All tokens in one row: the pairs and, between them, the unmatched tokens of both."""
        row: list[tuple[int | None, int | None]] = []
        i = j = 0
        for end_i, end_j in (*self.pairs, (len(self.first), len(self.second))):
            row += [(k, None) for k in range(i, end_i)] + [(None, k) for k in range(j, end_j)]
            if end_i < len(self.first):  # the last stop is the end of both, not a pair
                row.append((end_i, end_j))
            i, j = end_i + 1, end_j + 1
        return tuple(row)

    @property
    def labels(self) -> tuple[str, ...]:
        """Label for each entry of ``merged``: the token, ``·tired / ·wide``, ``·tired (A)`` or ``·wide (B)``."""
        equal = dict(zip(self.pairs, self.equal, strict=True))
        return tuple(
            f"{self.first[i].display} (A)"
            if j is None
            else f"{self.second[j].display} (B)"
            if i is None
            else self.first[i].display
            if equal[i, j]
            else f"{self.first[i].display} / {self.second[j].display}"
            for i, j in self.merged
        )


def align(first: TokenSequence, second: TokenSequence) -> Alignment:
    """Match tokens with the same text in the same order (longest blocks, Ratcliff & Obershelp 1988).

    Tokens are compared by text, not by id, because tokenizers may differ: some read lower case only, and some put a
    space before the first word. If a block of tokens is replaced by a block of the same size, its tokens are paired one
    by one; ``equal`` is false for these, and where the case differs. ``align(b, a)`` gives the same pairs, reversed.
    """
    texts = [tuple((token.special, _text(token)) for token in tokens) for tokens in (first, second)]
    keys = [tuple((special, text.casefold()) for special, text in side) for side in texts]
    turned = keys[1] < keys[0]  # difflib is not symmetric: always call it in the same direction
    a, b = (keys[1], keys[0]) if turned else (keys[0], keys[1])
    found: list[tuple[int, int]] = []
    for what, i, end_i, j, end_j in SequenceMatcher(None, a, b, autojunk=False).get_opcodes():
        if what == "equal" or (what == "replace" and end_i - i == end_j - j):
            found += zip(range(i, end_i), range(j, end_j), strict=True)
    pairs = tuple((y, x) if turned else (x, y) for x, y in found)
    return Alignment(first, second, pairs, tuple(texts[0][i] == texts[1][j] for i, j in pairs))


def _text(token: Token) -> str:
    return token.text.strip() or token.text or token.display


@dataclass(frozen=True)
class MapDifference:
    """Difference of two attention maps over the tokens of both.

    Attributes:
        values: second − first, [row, column], from −1 to 1.
        known: [row, column]; ``False`` where a token has no counterpart or neither map allows the cell; ``values`` are
            0 there.
        query: Correspondence of the rows.
        key: Correspondence of the columns.
    """

    values: np.ndarray
    known: np.ndarray
    query: Alignment
    key: Alignment

    @property
    def mean_change(self) -> float:
        """Mean of |second − first| over the ``known`` cells; NaN if there are none."""
        return float(np.abs(self.values[self.known]).mean()) if self.known.any() else float("nan")

    @property
    def n_unaligned(self) -> int:
        """Number of rows and columns without a counterpart."""
        return sum(None in entry for side in (self.query, self.key) for entry in side.merged)


def compared_attention(trace: Trace, stack: str, layer: int, kind: str = "self") -> AttentionView:
    """Return an attention layer with the rows that are compared with those of another run.

    In cross-attention these are the rows that predict the same token, where a translation attends to the source for its
    next token; otherwise those that read the same token.
    """
    view = trace.attention(stack, layer, kind)
    return replace(view, query=trace.prediction) if kind == "cross" and trace.prediction else view


def difference_map(
    first: AttentionView, second: AttentionView, *, head: int, second_head: int | None = None
) -> MapDifference:
    """Compute α_second[i′, j′] − α_first[i, j] for corresponding queries i, i′ and keys j, j′.

    Raises:
        ValueError: If the head, or ``second_head`` (default: the same head), does not exist.
    """
    heads = (head, head if second_head is None else second_head)
    for view, number in zip((first, second), heads, strict=True):
        if not 0 <= number < view.n_heads:
            raise ValueError(f"{view.name}: there is no head {number}; choose 0 to {view.n_heads - 1}")
    query, key = align(first.query, second.query), align(first.key, second.key)
    shape = (len(query.merged), len(key.merged))
    values, known = np.zeros(shape, dtype=np.float32), np.zeros(shape, dtype=bool)
    rows, columns = (
        np.array([place for place, entry in enumerate(side.merged) if None not in entry], dtype=np.int64)
        for side in (query, key)
    )
    one, two = (
        view.weights[number][np.ix_(query.positions[side], key.positions[side])]
        for side, (view, number) in enumerate(zip((first, second), heads, strict=True))
    )
    seen = [view.allowed[np.ix_(query.positions[k], key.positions[k])] for k, view in enumerate((first, second))]
    known[np.ix_(rows, columns)] = seen[0] | seen[1]
    values[np.ix_(rows, columns)] = two - one
    return MapDifference(values, known, query, key)


class Shift(NamedTuple):
    """A row of a head whose largest weight is on another token in the second run; tokens are labels.

    Attributes:
        query: The token of the row.
        before: The token that it attends to most in the first run.
        after: The token that it attends to most in the second run.
        cells: Row and column of that largest weight, in each run.
    """

    query: str
    before: str
    after: str
    cells: tuple[tuple[int, int], tuple[int, int]]

    @property
    def labels(self) -> dict[str, str]:
        """The labels of the three tokens, by the names of their fields."""
        return {"query": self.query, "before": self.before, "after": self.after}


def largest_shift(first: AttentionView, second: AttentionView, *, head: int) -> Shift | None:
    """Return the row of a head that attends most clearly to another token in the second run.

    Rows of words come before those of punctuation and special tokens. ``None`` where every row that corresponds
    attends most to the same token in both runs.
    """
    rows, other_rows = align(first.query, second.query).positions
    keys, other_keys = align(first.key, second.key).positions
    partners = dict(zip(keys.tolist(), other_keys.tolist(), strict=True))
    found = []
    for row, other_row in zip(rows.tolist(), other_rows.tolist(), strict=True):
        weights, others = first.weights[head, row], second.weights[head, other_row]
        before, after = int(weights.argmax()), int(others.argmax())
        if partners.get(before) != after:
            weight = float(min(weights[before], others[after]))
            found.append((_is_word(first.query[row]), weight, row, other_row, before, after))
    if not found:
        return None
    *_, row, other_row, before, after = max(found)
    cells = (row, before), (other_row, after)
    return Shift(first.query.labels[row], first.key.labels[before], second.key.labels[after], cells)


def _is_word(token: Token) -> bool:
    return any(letter.isalnum() for letter in token.text)


def head_divergence(first: AttentionView, second: AttentionView, *, head: int | None = None) -> np.ndarray:
    """Return the Jensen–Shannon divergence of the rows, averaged over corresponding queries: [head].

    JSD(P, Q) = ½ KL(P ‖ M) + ½ KL(Q ‖ M) in bits, M = ½ (P + Q) (Lin 1991); 0 for equal rows, 1 for disjoint ones. All
    weight on keys without a counterpart is treated as one additional key. It is NaN if no query or no key has a
    counterpart.

    Args:
        first: First view.
        second: Second view.
        head: If given, this head of ``first`` is compared with all heads of ``second``; by default head h with head h.
    """
    query, key = align(first.query, second.query), align(first.key, second.key)
    if not query.pairs or not key.pairs:
        return np.full(second.n_heads if head is not None else min(first.n_heads, second.n_heads), np.nan)
    p, q = (
        _with_rest(view.weights[:, query.positions[side]], key.positions[side])
        for side, view in enumerate((first, second))
    )
    if head is not None:
        p = p[head : head + 1]
    else:
        p, q = p[: len(q)], q[: len(p)]
    middle = (p + q) / 2
    return np.maximum(0.0, ((_kl(p, middle) + _kl(q, middle)) / 2).mean(axis=-1))


def _with_rest(weights: np.ndarray, keys: np.ndarray) -> np.ndarray:
    """Return [head, query, corresponding keys + 1]; the last column sums the weights of all other keys."""
    kept = weights[:, :, keys].astype(np.float64)
    rest = np.maximum(0.0, weights.sum(axis=-1, dtype=np.float64) - kept.sum(axis=-1))
    return np.concatenate((kept, rest[..., None]), axis=-1)


def _kl(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    ratio = np.divide(p, q, out=np.ones_like(q), where=(p > 0) & (q > 0))
    return (p * np.log2(ratio)).sum(axis=-1)


def head_differences(first: Trace, second: Trace, stack: str, kind: str = "self") -> np.ndarray:
    """Return ``head_divergence`` of every head that both runs have, [layer, head]."""
    layers = range(min(first.n_layers(stack), second.n_layers(stack)))
    both = [[compared_attention(trace, stack, layer, kind) for trace in (first, second)] for layer in layers]
    return np.stack([head_divergence(*views) for views in both])


@dataclass(frozen=True)
class StreamSimilarity:
    """cos(x, x′) of corresponding tokens, [step, pair]; ``steps`` are the embedding and then every layer."""

    steps: tuple[str, ...]
    alignment: Alignment
    cosine: np.ndarray

    @property
    def labels(self) -> tuple[str, ...]:
        """One label per pair."""
        both = zip(self.alignment.labels, self.alignment.merged, strict=True)
        return tuple(label for label, entry in both if None not in entry)


def stream_similarity(first: Trace, second: Trace, stack: str) -> StreamSimilarity:
    """Compare the residual streams of two runs of one checkpoint, token by token and layer by layer.

    Raises:
        ValueError: If the residual streams differ in width: vectors of two models have no common axes.
    """
    start, layers = f"{stack}.layers.0.residual.in", range(first.n_layers(stack))
    names = (start, *(f"{stack}.layers.{layer}.residual.out" for layer in layers))
    widths = tuple(trace[start].shape[-1] for trace in (first, second))
    depths = (first.n_layers(stack), second.n_layers(stack))
    if widths[0] != widths[1] or depths[0] != depths[1]:
        raise ValueError(
            f"the two runs have {depths[0]} and {depths[1]} layers of {widths[0]} and {widths[1]} numbers; only two "
            f"runs of one checkpoint can be compared number by number"
        )
    alignment = align(first.tokens(stack), second.tokens(stack))
    one, two = alignment.positions
    rows = []
    for name in names:
        x, y = first.values(name)[one].astype(np.float64), second.values(name)[two].astype(np.float64)
        lengths = np.linalg.norm(x, axis=-1) * np.linalg.norm(y, axis=-1)
        rows.append(np.divide((x * y).sum(axis=-1), lengths, out=np.zeros(len(x)), where=lengths > 0))
    steps = ("embedding", *(f"layer {layer}" for layer in layers))
    return StreamSimilarity(steps, alignment, np.clip(np.stack(rows), -1.0, 1.0))


_WORDS = re.compile(r"\s*(?:\w+(?:['’-]\w+)*['’]?|[^\w\s]+)", re.UNICODE)


class Piece(NamedTuple):
    """Consecutive words that are "same", "removed" or "added", with the spaces before them."""

    fate: str
    text: str


def word_diff(before: str, after: str) -> tuple[Piece, ...]:
    """Return the shortest list of pieces that contains both texts, compared word by word.

    Punctuation marks are words of their own. Spaces are not compared.
    """
    old, new = words(before), words(after)
    pieces: list[Piece] = []
    matcher = SequenceMatcher(None, [word.strip() for word in old], [word.strip() for word in new], autojunk=False)
    for fate, i, j, k, n in matcher.get_opcodes():
        if fate == "equal":
            pieces.append(Piece("same", "".join(new[k:n])))
            continue
        if j > i:
            pieces.append(Piece("removed", "".join(old[i:j])))
        if n > k:
            pieces.append(Piece("added", "".join(new[k:n])))
    return tuple(pieces)


def words(text: str) -> list[str]:
    """Split a text into words and punctuation marks of any script, each with the spaces before it."""
    return _WORDS.findall(text)
