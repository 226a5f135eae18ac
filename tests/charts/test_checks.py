"""Errors are sentences that name the value and what would be valid."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from charts.toolkit import checks
from transformer.runs.activation import Activation


def test_as_array_takes_activations_and_gives_float32():
    activation = Activation("encoder.embedding.sum", ("position", "model"), np.ones((2, 3)))
    array = checks.as_array(activation, name="rows", axes=("token", "dimension"), sizes={"token": 2})
    assert array.dtype == np.float32
    assert array.shape == (2, 3)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (np.ones((3, 4)), r"rows has shape \(3, 4\); it must be \[2 × token, dimension\]"),
        (np.ones(2), r"rows has shape \(2,\); it must be \[2 × token, dimension\]"),
        (np.ones((2, 0)), r"rows has shape \(2, 0\), so there is nothing to draw"),
        (np.array([[1.0], [-2.5]]), r"rows holds -2.5; it cannot be less than 0"),
    ],
)
def test_as_array_refuses(values, message):
    with pytest.raises(ValueError, match=message):
        checks.as_array(values, name="rows", axes=("token", "dimension"), sizes={"token": 2}, signed=False)


def test_as_probabilities():
    with pytest.raises(ValueError, match=r"weights holds 1.3; a weight or probability lies between 0 and 1"):
        checks.as_probabilities([0.2, 1.3], name="weights", axes=("key",))
    assert np.isnan(checks.as_probabilities([np.nan], name="weights", axes=("key",))[0])


def test_require_columns():
    frame = pd.DataFrame({"piece": ["a"]})
    with pytest.raises(ValueError, match=r"candidates lacks the columns \['probability'\]; it has \['piece'\]"):
        checks.require_columns(frame, name="candidates", columns=("piece", "probability"))
    with pytest.raises(ValueError, match="candidates has 0 rows"):
        checks.require_columns(frame[:0], name="candidates", columns=("piece",))


def test_require_index_and_length():
    assert checks.require_index(2, name="head", size=3) == 2
    for index in (-1, 3):
        with pytest.raises(ValueError, match=f"head is {index}, but there are only 3; choose 0 to 2"):
            checks.require_index(index, name="head", size=3)
    with pytest.raises(ValueError, match="displays has 2 entries, but there are 3 rows; give one for each"):
        checks.require_same_length("displays", ["a", "b"], expected=3, of="rows")
