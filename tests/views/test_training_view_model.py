"""The view model of the Training page: each number equals that of the moments."""

from __future__ import annotations

import math

import numpy as np
import pytest

import transformer
from tests.conftest import ROOT
from transformer.heads.roles_through_training import Moment, changed_most, development, map_change
from transformer.runs.head_places import Head
from views.training.training_view_model import mean_probability, training_view_model


@pytest.fixture(scope="module")
def moments() -> tuple[Moment, ...]:
    return development(transformer.load(ROOT / "checkpoints" / "en-fr-sharp"), "The cat sat on the mat.")


def test_it_opens_on_the_head_that_changes_most_and_on_another_output(moments) -> None:
    shown = training_view_model(moments)
    assert (shown.location, shown.most_changed[1]) == changed_most(moments)
    assert shown.early.text != shown.late.text and shown.shift is not None
    assert mean_probability(shown.late) > 2 * mean_probability(shown.early)


def test_distances_are_to_the_final_map(moments) -> None:
    location = Head("decoder", "cross", 1, 0)
    shown = training_view_model(moments, location)
    expected = [map_change(view, shown.views[-1])[0] for view in shown.views]
    np.testing.assert_allclose(shown.distances, expected)
    assert shown.distances[-1] == 0 < shown.distances[0]
    assert [role.place for role in shown.roles] == [location] * len(moments)


def test_a_model_that_is_asked_nothing_has_no_probability() -> None:
    assert math.isnan(mean_probability(Moment(0, "", math.nan, 0, 0.0, (), ())))
