"""Copying, computed from the weights alone, equals the OV circuit of every head of a linear path."""

from __future__ import annotations

import pytest

from tests.transformer.copying import COPYING, copying_checkpoint
from transformer.heads.head_circuits import output_value_circuit
from transformer.heads.role_measures import copying_measures


@pytest.mark.parametrize(("kind", "count"), [("translator", 8), ("gpt", 4), ("bert", 4), ("sentiment", 0)])
def test_every_head_that_writes_words_has_a_score(tiny_checkpoint, kind: str, count: int) -> None:
    checkpoint = tiny_checkpoint(kind)
    found = copying_measures(checkpoint)
    assert len(found) == count and all(-1 <= one.score <= 1 and one.chance == 0 for one in found.values())
    for (stack, which, layer, head), one in found.items():
        circuit = output_value_circuit(checkpoint.model, stack, which, layer=layer, head=head)
        assert one.score == pytest.approx(circuit.copying_score, abs=1e-9)


def test_the_head_that_copies_is_told_from_those_that_write_nothing(tiny_tokenizer) -> None:
    found = copying_measures(copying_checkpoint(tiny_tokenizer))
    assert list(found) == [("decoder", "self", 0, COPYING)] and found["decoder", "self", 0, COPYING].score > 0.95
