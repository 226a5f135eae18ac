"""The heads most similar to another one, by hand."""

import math

import numpy as np
import pytest

import transformer
from transformer.heads.head_similarity import most_alike, most_alike_maps


def test_nearest_by_standardised_measures():
    heads = [
        {"previous": 0.9, "entropy": 10.0, "same": 0.1},
        {"previous": 0.8, "entropy": 10.0, "same": 0.1},
        {"previous": 0.9, "entropy": 90.0, "same": 0.1},
        {"previous": 0.1, "entropy": 50.0, "same": 0.1},
    ]
    assert most_alike(heads, 0) == (1, 2, 3), "an entropy in other units does not outweigh the rest"
    assert most_alike(heads, 3, most=1) == (1,)


def test_a_measure_that_one_head_lacks_does_not_count():
    heads = [{"a": 0.0, "b": 0.0}, {"a": 1.0, "b": math.nan}, {"a": 5.0, "b": 0.0}]
    assert most_alike(heads, 0) == (1, 2)
    assert most_alike([{"a": math.nan}, {"a": 1.0}], 1) == ()
    assert most_alike([{"a": 1.0}, {"a": 1.0}], 0) == ()


def test_the_nearest_maps_by_plain_loops(tiny_checkpoint):
    trace = transformer.trace(tiny_checkpoint("translator"), "The old man told us a story.")
    views = [trace.attention("decoder", layer, "self") for layer in range(trace.n_layers("decoder"))]
    found = most_alike_maps(views, 1, 0, most=99)
    assert len(found) == sum(view.n_heads for view in views) - 1 and (1, 0) not in [one[:2] for one in found]
    shares = [share for _, _, share in found]
    assert shares == sorted(shares, reverse=True) and 0 < shares[-1] <= shares[0] <= 1
    for layer, head, share in found:
        rows = []
        for query in range(1, len(views[0].query)):  # the first row may attend only to itself
            both = zip(views[layer].weights[head, query], views[1].weights[0, query], strict=True)
            rows.append(sum(min(pair) for pair in both))
        assert share == pytest.approx(np.mean(rows))
