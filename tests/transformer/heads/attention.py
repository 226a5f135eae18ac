"""Hand-made attention, with weights and tokens that a test chooses."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from transformer.runs.attention_view import AttentionView
from transformer.text.tokens import Token, TokenSequence

SPECIAL = {"<s>": "start", "</s>": "end", "<pad>": "pad", "<mask>": "mask"}


def tokens(words: Sequence[str]) -> TokenSequence:
    """Return tokens: a space begins a word, ids follow first occurrence."""
    ids = {word: number for number, word in enumerate(dict.fromkeys(words))}
    return TokenSequence(
        tuple(
            Token(index, ids[word], word, word.replace(" ", "·"), word in SPECIAL, SPECIAL.get(word, ""))
            for index, word in enumerate(words)
        )
    )


def made(
    weights: np.ndarray,
    query: Sequence[str],
    key: Sequence[str] | None = None,
    *,
    causal: bool = False,
    allowed: np.ndarray | None = None,
    kind: str = "",
) -> AttentionView:
    """Return a view with normalised ``weights`` [head, query, key]; with ``key``, of cross-attention."""
    if allowed is None:
        allowed = np.ones((len(query), len(key or query)), dtype=bool)
    if causal:
        allowed = np.tril(allowed)
    weights = np.asarray(weights, dtype=float) * allowed
    return AttentionView(
        name="layer",
        stack="decoder" if causal or key else "encoder",
        layer=0,
        kind=kind or ("cross" if key else "self"),
        weights=weights / np.maximum(weights.sum(axis=-1, keepdims=True), 1e-30),
        allowed=allowed,
        scores=np.zeros(weights.shape),
        query=tokens(query),
        key=tokens(key or query),
    )


def pointing(columns: list[int], n_keys: int, *, share: float = 0.9) -> np.ndarray:
    """Return [1, query, key] in which each row gives ``share`` to one column and the rest evenly to all."""
    weights = np.full((1, len(columns), n_keys), (1 - share) / n_keys)
    weights[0, np.arange(len(columns)), columns] += share
    return weights


WORDS = ["<s>", *(f" w{n}" for n in range(40)), "</s>"]
