"""Readable units: the criteria, recomputed in another way."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import transformer
from tests.nights import by_day
from tests.shipped import SHIPPED
from transformer.layers.feed_forward_units import unit_words, vocabulary_matrix
from transformer.layers.readable_units import (
    LEAST_AKIN,
    LEAST_CLOSE,
    MOST_BESIDE,
    NEAR,
    WORDS,
    readable_units,
)

SENTENCE = "My grandmother bakes apple pie every Sunday."
OF_TEXT = [path for path in SHIPPED if not path.name.startswith("vit")]


def n_close(matrix: np.ndarray, ids: list[int]) -> int:
    """Count pairs in which one row is among the nearest 1 in NEAR of the other, by sorting all cosines."""
    rows = matrix / np.linalg.norm(matrix, axis=1, keepdims=True)
    places = {id: {int(other): place for place, other in enumerate(np.argsort(-(rows @ rows[id])))} for id in ids}
    most = max(1, len(matrix) // NEAR)
    pairs = [(one, other) for place, one in enumerate(ids) for other in ids[place + 1 :]]
    return sum(min(places[one][other], places[other][one]) <= most for one, other in pairs)


def is_near(matrix: np.ndarray, one: int, other: int) -> bool:
    """Return whether a row is among the nearest 1 in NEAR of another."""
    rows = matrix / np.linalg.norm(matrix, axis=1, keepdims=True)
    nearer = int((rows @ rows[one] > rows[other] @ rows[one]).sum())
    return nearer <= max(1, len(matrix) // NEAR)


@pytest.mark.parametrize("path", by_day(OF_TEXT, ("en-fr", "gpt-en", "bert-en", "sentiment"), id_of="name"))
def test_a_readable_unit_promotes_words_that_are_close_where_it_fires_most(path: Path) -> None:
    trace = transformer.trace(transformer.load(path), SENTENCE)
    for stack in trace.stacks:
        matrix, _ = vocabulary_matrix(trace.checkpoint, stack)
        for one in readable_units(trace, stack):
            hidden = trace.values(f"{stack}.layers.{one.layer}.feed_forward.hidden")[:, one.words.unit]
            words = [token.index for token in trace.tokens(stack) if not token.special]
            assert hidden[one.position] == hidden[words].max() > 0
            others = [hidden[place] for place in words if place != one.position]
            assert max(0, max(others) / hidden[one.position]) == pytest.approx(one.beside, abs=1e-5)
            assert one.beside <= MOST_BESIDE
            (again,) = unit_words(trace, stack, one.layer, one.position, units=[one.words.unit], words=WORDS)
            assert [word.id for word in again.up] == [word.id for word in one.words.up]
            assert n_close(matrix, [word.id for word in again.up]) == one.n_close
            assert one.n_close >= LEAST_CLOSE and one.n_akin >= LEAST_AKIN
            own = trace.tokens(stack)[one.position].id
            akin = [word.id for word in again.up if word.id != own and is_near(matrix, word.id, own)]
            assert len(akin) == one.n_akin


@pytest.mark.parametrize("name", ["en-fr", "bert-en"])
def test_a_trained_model_has_readable_units_and_each_has_words_of_its_own(name: str) -> None:
    trace = transformer.trace(transformer.load(f"checkpoints/{name}"), SENTENCE)
    found = [one for stack in trace.stacks for one in readable_units(trace, stack)]
    assert found
    for stack in trace.stacks:
        positions = [one.position for one in readable_units(trace, stack)]
        assert len(set(positions)) == len(positions), "one unit per token"
        ids = [{word.id for word in one.words.up} for one in readable_units(trace, stack)]
        assert all(len(one & other) <= WORDS // 2 for place, one in enumerate(ids) for other in ids[place + 1 :])


def test_random_weights_have_none(tiny_checkpoint) -> None:
    trace = transformer.trace(tiny_checkpoint("tiny-gpt"), SENTENCE)
    assert readable_units(trace, "decoder") == ()


def test_comparing_a_few_words_at_a_time_finds_the_same_units(monkeypatch: pytest.MonkeyPatch) -> None:
    trace = transformer.trace(transformer.load("checkpoints/en-fr"), SENTENCE)
    at_once = readable_units(trace, "encoder")
    monkeypatch.setattr("transformer.layers.readable_units._BLOCK", 7)
    assert readable_units(trace, "encoder") == at_once != ()
