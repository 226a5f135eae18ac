"""The heads most like another one, by hand."""

import math

from transformer.roles.likeness import most_alike


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
