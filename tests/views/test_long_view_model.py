"""The window on a long text: what it shows, what the overview says, and what a search finds."""

from __future__ import annotations

import doctest
from collections.abc import Callable

import numpy as np
import pytest

import transformer
from tests.long_texts import long_sentence
from transformer.runs.head_places import Head
from views.attention import long_view_model as module
from views.attention.attention_view_model import AttentionChoices, attention_view_model
from views.attention.long_view_model import LongViewModel

SIZE = 16


@pytest.fixture(scope="module")
def trace_of_long(tiny_checkpoint: Callable) -> transformer.Trace:
    checkpoint = tiny_checkpoint("gpt")
    return transformer.trace(checkpoint, long_sentence(checkpoint, 90), strategy=transformer.Greedy(1))


@pytest.fixture
def shown(trace_of_long: transformer.Trace) -> Callable[..., LongViewModel]:
    def make(row: int, *, key: int | None = None, **more: object) -> LongViewModel:
        head = attention_view_model(trace_of_long, Head("decoder", "self", 1, 1), row, AttentionChoices(key=key))
        return LongViewModel(head, size=SIZE, **more)

    return make


def test_the_example_of_the_docstring() -> None:
    assert doctest.testmod(module).failed == 0


def test_the_window_shows_a_part_of_the_map(shown, trace_of_long) -> None:
    window = shown(40, block=1, key=20)
    weights = trace_of_long.attention("decoder", 1).weights
    assert (window.rows, window.columns) == (range(32, 48), range(16, 32))
    np.testing.assert_array_equal(window.window.weights, weights[:, 32:48, 16:32])
    assert window.window.key.ids == trace_of_long.target.ids[16:32]
    assert window.cell == (8, 4)
    assert shown(40, block=0, key=20).cell is None
    row = trace_of_long.attention("decoder", 1).weights[1, 40]
    apart = [row[max(1, first) : first + SIZE].sum() for first in range(0, len(row), SIZE)]
    assert shown(40).key_block == np.argmax(apart), (
        "without a choice, where the row attends most, the first token apart"
    )
    assert shown(len(trace_of_long.target) - 1).rows[-1] == len(trace_of_long.target) - 1, "the last block is shorter"


def test_the_overview_has_one_number_per_pair_of_blocks(shown, trace_of_long) -> None:
    window = shown(40, block=2)
    weights = trace_of_long.attention("decoder", 1).weights[1]
    assert window.overview.shape == (len(window.blocks),) * 2
    assert window.overview[2, 1] == weights[32:48, 16:32].max()
    assert window.may_attend[2, 2] and not window.may_attend[1, 2]
    np.testing.assert_allclose(window.strip.sum(), 1, rtol=1e-6)
    np.testing.assert_allclose(window.share_in_window, weights[40, 32:48].sum(), rtol=1e-6)
    assert window.strongest[0] == weights[40].argmax()


def test_a_word_is_found_wherever_it_begins(shown, trace_of_long) -> None:
    tokens = trace_of_long.target
    window = shown(40, block=1, find=" OTHER shoe ")
    (place,) = window.found
    assert "".join(token.text for token in tokens.tokens[place:]).strip().startswith("other shoe")
    assert window.neighbours == (place, place)
    many = shown(40, block=1, find="i")
    assert many.found_here == tuple(token for token in many.found if 16 <= token < 32)
    assert all("i" in tokens[token].text.casefold() for token in many.found)
    before, after = many.neighbours
    assert before == max(token for token in many.found if token < 16)
    assert after == min(token for token in many.found if token >= 32)
    assert shown(40, find="zebra").neighbours is None
