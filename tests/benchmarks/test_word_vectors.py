"""The comparison of word vectors counts the nearest words that two runs have in common."""

from __future__ import annotations

import numpy as np

from benchmarks.word_vectors import NEAREST, nearest_words, shared


def test_equal_tables_share_everything_and_turned_ones_too() -> None:
    draw = np.random.default_rng(0)
    words = [f"w{number}" for number in range(40)]
    table = draw.normal(size=(40, 6))
    turn = np.linalg.qr(draw.normal(size=(6, 6)))[0]
    own = nearest_words(words, table, words[:5])
    assert all(len(found) == NEAREST and word not in found for word, found in zip(words, own, strict=False))
    assert shared(own, own) == 1.0
    assert shared(own, nearest_words(words, table @ turn, words[:5])) == 1.0  # cosines do not change
    half = [set(sorted(found)[:5]) | {f"x{number}" for number in range(5)} for found in own]
    assert shared(own, half) == 0.5
