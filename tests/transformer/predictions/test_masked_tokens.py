"""What could stand at a blank, or where a word stands already."""

from __future__ import annotations

import numpy as np
import pytest

import transformer
from transformer.predictions.masked_tokens import blanks, filled, fillings


def test_blanks_are_found_where_they_were_typed(tiny_checkpoint):
    checkpoint = tiny_checkpoint("bert")
    trace = transformer.trace(checkpoint, "The ___ sat on the [MASK].")
    found = blanks(trace)
    assert len(found) == 2 and [trace.source[position].display for position in found] == ["<mask>"] * 2
    assert blanks(transformer.trace(checkpoint, "The cat sat on the mat.")) == ()


def test_fillings_are_the_softmax_of_the_logits(tiny_checkpoint):
    checkpoint = tiny_checkpoint("bert")
    trace = transformer.trace(checkpoint, "The ___ sat on the mat.")
    (position,) = blanks(trace)
    found = fillings(trace, position, shown=6)
    logits = trace.values("encoder.logits")[position].astype(np.float64)
    powers = np.exp(logits - logits.max())
    expected = powers / powers.sum()
    assert len(found.rows) == 6
    assert [row.probability for row in found.rows] == sorted((row.probability for row in found.rows), reverse=True)
    for row in found.rows:
        assert row.probability == pytest.approx(expected[row.id], rel=1e-6)
        assert row.piece == checkpoint.tokenizer.display(row.id) and not row.stands_there
    assert sum(row.probability for row in found.rows) + found.rest == pytest.approx(1.0)
    everything = fillings(trace, position, shown=10_000).rows
    assert {"<mask>", "<pad>", "<s>"}.isdisjoint(row.piece for row in everything) and len(everything) == len(logits) - 3


def test_blanks_are_filled_with_the_likeliest_word(tiny_checkpoint):
    checkpoint = tiny_checkpoint("bert")
    trace = transformer.trace(checkpoint, "The ___ sat on the ___")
    words = [fillings(trace, position).rows[0].piece.replace("·", " ") for position in blanks(trace)]
    assert filled(trace) == f"The{words[0]} sat on the{words[1]}"


def test_the_word_that_stands_there_is_listed(tiny_checkpoint):
    checkpoint = tiny_checkpoint("bert")
    trace = transformer.trace(checkpoint, "The cat sat on the mat.")
    for position in range(1, len(trace.source) - 1):
        rows = fillings(trace, position, shown=3).rows
        assert [row.id for row in rows if row.stands_there] == [trace.source[position].id]
    everything = fillings(trace, 0, shown=10_000).rows  # <s> has its place among the others, not behind them
    assert next(row.piece for row in everything if row.stands_there) == "<s>"
    assert [row.probability for row in everything] == sorted((row.probability for row in everything), reverse=True)
