"""Temperature, top-k and top-p on handwritten logits."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from transformer.runs.decoding_strategies import Beam, Greedy, Sample, length_penalty, reshape_logits

LOGITS = torch.tensor([math.log(p) for p in (0.1, 0.5, 0.25, 0.15)])


def chances(**settings: float) -> list[float]:
    return torch.softmax(reshape_logits(LOGITS, **settings), dim=-1).tolist()


def test_nothing_changes_by_default() -> None:
    assert torch.equal(reshape_logits(LOGITS), LOGITS)


def test_temperature_divides() -> None:
    assert torch.equal(reshape_logits(LOGITS, temperature=2.0), LOGITS / 2)
    cold, hot = chances(temperature=0.1), chances(temperature=100.0)
    assert cold[1] > 0.99
    assert max(hot) - min(hot) < 0.01


def test_top_k() -> None:
    assert chances(top_k=1) == [0, 1, 0, 0]
    assert chances(top_k=2) == pytest.approx([0, 2 / 3, 1 / 3, 0])
    assert chances(top_k=4) == pytest.approx([0.1, 0.5, 0.25, 0.15])
    assert chances(top_k=99) == pytest.approx([0.1, 0.5, 0.25, 0.15])


def test_top_k_keeps_exactly_k_of_equal_logits() -> None:
    reshaped = reshape_logits(torch.zeros(6), top_k=2)
    assert torch.isfinite(reshaped).tolist() == [True, True, False, False, False, False]


@pytest.mark.parametrize(
    ("top_p", "kept"), [(1e-9, 1), (0.49, 1), (0.51, 2), (0.74, 2), (0.76, 3), (0.95, 4), (1.0, 4)]
)
def test_top_p_keeps_the_token_that_crosses_the_border(top_p: float, kept: int) -> None:
    assert sum(chance > 0 for chance in chances(top_p=top_p)) == kept


def test_top_p_counts_what_top_k_has_left() -> None:
    assert chances(top_k=2, top_p=0.6) == [0, 1, 0, 0]  # the first of the remaining two has 2/3
    assert chances(top_k=2, top_p=0.7) == pytest.approx([0, 2 / 3, 1 / 3, 0])


def test_rows_are_treated_alone_and_the_input_stays() -> None:
    rows = torch.stack((LOGITS, LOGITS.flip(0)))
    before = rows.clone()
    reshaped = reshape_logits(rows, temperature=0.7, top_k=3, top_p=0.8)
    assert torch.equal(rows, before)
    assert torch.equal(reshaped[0], reshape_logits(LOGITS, temperature=0.7, top_k=3, top_p=0.8))
    assert torch.equal(reshaped[1], reshaped[0].flip(0))


@given(
    st.lists(st.floats(-50, 50, width=32), min_size=1, max_size=12),
    st.floats(0.001, 1000),
    st.integers(0, 14),
    st.floats(0.001, 1.0),
)
def test_something_to_draw_from_is_always_left(
    logits: list[float], temperature: float, top_k: int, top_p: float
) -> None:
    tensor = torch.tensor(logits)
    chance = torch.softmax(reshape_logits(tensor, temperature=temperature, top_k=top_k, top_p=top_p), dim=-1)
    assert torch.isfinite(chance).all()
    assert float(chance.sum()) == pytest.approx(1.0, abs=1e-4)
    scaled = tensor / temperature  # slightly different logits may become equal here
    assert chance[scaled.argmax()] == chance.max()
    if top_k:
        assert int((chance > 0).sum()) <= top_k


def test_tokens_that_are_ruled_out_stay_ruled_out_at_any_temperature() -> None:
    logits = torch.tensor([-math.inf, 1.0, 2.0])
    for temperature in (0.001, 1.0, 1000.0):
        assert reshape_logits(logits, temperature=temperature, top_k=2, top_p=0.9)[0] == -math.inf


def test_length_penalty() -> None:
    assert length_penalty(1, 0.6) == 1.0
    assert length_penalty(7, 1.0) == 2.0
    assert length_penalty(7, 0.0) == 1.0
    assert length_penalty(19, 0.5) == 2.0


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Sample(temperature=0), "temperature is 0; .*Greedy"),
        (lambda: Sample(temperature=-1.0), "temperature is -1.0"),
        (lambda: Sample(temperature=math.nan), "temperature is nan"),
        (lambda: Sample(temperature=math.inf), "temperature is inf"),
        (lambda: Sample(top_k=-1), "top_k is -1"),
        (lambda: Sample(top_p=0.0), "top_p is 0.0"),
        (lambda: Sample(top_p=1.1), "top_p is 1.1"),
        (lambda: Sample(top_p=math.nan), "top_p is nan"),
        (lambda: Beam(width=0), "width is 0"),
        (lambda: Beam(length_penalty=-0.1), "length_penalty is -0.1"),
        (lambda: Greedy(max_new_tokens=0), "max_new_tokens is 0"),
        (lambda: Sample(max_new_tokens=0), "max_new_tokens is 0"),
        (lambda: Beam(max_new_tokens=-2), "max_new_tokens is -2"),
    ],
)
def test_wrong_settings_are_refused_by_name_and_value(make: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()
