"""The bug of each case: the same for everybody, every diagnosis once per round."""

from __future__ import annotations

import pytest

from tests.transformer import tiny
from transformer.faults.catalogue import FAULTS, diagnoses, diagnosis_of, inapplicable
from transformer.faults.fault_checks import CHECKS


@pytest.mark.parametrize("kind", tiny.LAYERS)
def test_every_round_has_every_diagnosis_once(kind):
    config = tiny.config(kind)
    possible = diagnoses(config)
    rounds = [
        [diagnosis_of(turn * len(possible) + place, config) for place in range(len(possible))] for turn in range(5)
    ]
    for round_ in rounds:
        assert sorted(map(str, round_)) == sorted(map(str, possible))
    assert any(round_ != rounds[0] for round_ in rounds), "the order must not be known after one round"


def test_every_fault_has_a_check():
    assert tuple(CHECKS) == FAULTS


@pytest.mark.parametrize(
    ("config", "fault", "reason"),
    [
        (tiny.config("decoder-only"), "padding", "causal_mask_hides"),
        (tiny.config("encoder-only", positions="none"), "positions", "no_positions"),
        (tiny.config(d_model=2), "scale", "one_channel"),
    ],
)
def test_what_a_model_cannot_have_is_never_drawn(config, fault, reason):
    assert inapplicable(config) == {fault: reason}
    assert fault not in {diagnosis_of(number, config).fault for number in range(30)}


def test_cases_are_counted_from_0():
    with pytest.raises(ValueError, match="number is -1"):
        diagnosis_of(-1, tiny.config())
