"""A map without some of its keys, and the attention that several tokens together receive or give.

Keys without content, such as the first token, special tokens and punctuation, often get most of a row, so that the rest
of the map is dark. Without them the map shows how a head divides what is left:

    α'_ij = α_ij ÷ Σ_{k kept} α_ik

This is not attention that the model computed: if the keys left out had 0.99 of a row, it shows how the last 0.01 was
divided. So ``share_left_out`` is always shown with it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from transformer.runs.attention_view import AttentionView
from transformer.text.tokens import TokenSequence


def sink_keys(view: AttentionView) -> tuple[int, ...]:
    """Return the keys that act as attention sinks.

    These are special tokens, punctuation and, in causal attention, the first token.
    """
    sinks = view.sinks.copy()
    sinks[0] |= view.is_causal  # Xiao et al. 2023
    return tuple(np.flatnonzero(sinks).tolist())


def without_keys(view: AttentionView, keys: Iterable[int]) -> AttentionView:
    """Return the same heads without the columns ``keys``, each row divided by what remains of it.

    A row of which nothing remains is all 0.

    Raises:
        ValueError: If a key does not exist, or none would remain.
    """
    kept = kept_keys(view, keys)
    weights = view.weights[:, :, kept]
    total = weights.sum(axis=-1, keepdims=True)
    names = (replace(view.key[key], index=index) for index, key in enumerate(kept))
    return replace(
        view,
        weights=np.divide(weights, total, out=np.zeros_like(weights), where=total > 0),
        allowed=view.allowed[:, kept],
        scores=view.scores[:, :, kept],
        key=TokenSequence(tuple(names), view.key.name),
    )


def kept_keys(view: AttentionView, left_out: Iterable[int]) -> list[int]:
    """Return the keys that remain without ``left_out``, in order."""
    left_out = frozenset(left_out)
    if unknown := sorted(left_out - frozenset(range(len(view.key)))):
        raise ValueError(f"{view.name} has no key {unknown[0]}; choose from 0 to {len(view.key) - 1}")
    kept = [key for key in range(len(view.key)) if key not in left_out]
    if not kept:
        raise ValueError(f"{view.name}: no key would remain; leave out fewer than all {len(view.key)}")
    return kept


def share_left_out(view: AttentionView, keys: Iterable[int]) -> np.ndarray:
    """Return the share of every row that goes to ``keys``: [head, query]."""
    return weight_received(view, sorted(set(keys)))


def weight_received(view: AttentionView, keys: Sequence[int]) -> np.ndarray:
    """Return what ``keys`` receive together from every query, Σ_{j in keys} α_ij: [head, query]."""
    return view.weights[:, :, list(keys)].sum(axis=-1)


def weight_given(view: AttentionView, queries: Sequence[int]) -> np.ndarray:
    """Return the mean row of ``queries``, Σ_{i in queries} α_ij ÷ their number: [head, key].

    It sums to 1, like a row; times the number of queries it is the sum of their rows.
    """
    return view.weights[:, list(queries)].mean(axis=1)
