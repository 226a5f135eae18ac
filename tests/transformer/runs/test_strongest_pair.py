"""The largest weight of a head from one token to another, with which sentences open."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import transformer


@pytest.mark.parametrize("name", ["translator", "gpt", "bert"])
def test_the_strongest_pair_is_off_the_diagonal_and_of_words(tiny_checkpoint: Callable, name: str) -> None:
    trace = transformer.trace(tiny_checkpoint(name), "The old man told us a story.")
    for view in trace.attention_views():
        words = np.flatnonzero(~view.sinks)
        for head in range(view.n_heads):
            query, key = view.strongest_pair(head)
            rows = words if view.kind == "self" else range(len(view.query))
            pairs = [(i, j) for i in rows for j in words if view.allowed[i, j] and (view.kind == "cross" or i != j)]
            assert (query, key) in pairs
            assert view.weights[head, query, key] == max(view.weights[head][pair] for pair in pairs)


def test_a_single_word_has_no_pair(tiny_checkpoint: Callable) -> None:
    view = transformer.trace(tiny_checkpoint("sentiment"), "a").attention("encoder", 0, "self")
    assert view.strongest_pair(0) is None
