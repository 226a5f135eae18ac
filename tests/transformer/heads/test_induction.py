"""A hand-built induction head is found, and nothing else is; random weights have none."""

from __future__ import annotations

import math
from collections.abc import Callable

import pandas as pd
import pytest
import torch
from torch.nn import functional as F

import transformer
from tests.conftest import ROOT
from tests.transformer.copying import COPYING, copying_checkpoint
from tests.transformer.inducing import INDUCTION, PREVIOUS, induction_checkpoint
from transformer.heads.induction import (
    LEAST_INDUCTION,
    induction_test,
    repeated_lengths,
    repeated_loss,
    repeated_scores,
    repeated_sequences,
)
from transformer.runs.head_places import Head
from transformer.text.tokenizer import SPECIAL_TOKENS, START_ID


def test_the_head_that_was_built_for_it_is_the_only_induction_head(tiny_tokenizer):
    found = induction_test(induction_checkpoint(tiny_tokenizer))
    assert max(found.lengths) == 15  # the model reads 32 tokens
    built, previous, even = (Head("decoder", "self", *place) for place in (INDUCTION, PREVIOUS, (0, 0)))
    assert found.heads == (built,)
    assert found.strongest == built and found.induction[built] > 0.95
    assert found.previous[previous] > 0.95 and found.induction[previous] < 0.05
    # The head ``even`` spreads its attention evenly.
    assert found.induction[even] == pytest.approx(found.chance, abs=1e-6)
    assert found.previous[even] == pytest.approx(found.chance, abs=1e-6)


def test_a_head_that_copies_the_previous_token_is_no_induction_head(tiny_tokenizer):
    found = induction_test(copying_checkpoint(tiny_tokenizer))
    assert found.heads == ()
    copying = Head("decoder", "self", 0, COPYING)
    assert found.previous[copying] > 0.95 and found.induction[copying] < 0.05


def test_random_weights_have_no_induction_head(tiny_checkpoint):
    found = induction_test(tiny_checkpoint("gpt"))
    assert found.heads == ()
    assert set(found.induction) == {Head("decoder", "self", layer, head) for layer in (0, 1) for head in (0, 1)}
    assert found == induction_test(tiny_checkpoint("gpt"))
    assert found != induction_test(tiny_checkpoint("gpt"), seed=1)


def test_scores_are_read_at_the_token_after_the_first_place():
    """n = 2: <s> a b a b. The second a (row 3) must attend to b (2), the second b (row 4) to a (3)."""
    weights = torch.zeros(2, 5, 5)
    weights[0, 3, 2], weights[0, 4, 3] = 0.5, 0.25
    weights[1, 3, 1], weights[1, 4, 2] = 1.0, 1.0  # the first occurrences themselves: no induction
    induction, previous = repeated_scores(weights, 2).tolist()
    assert induction == [0.375, 0.0]
    assert previous == [0.375, 0.0]  # with two tokens the previous token is at that very position
    longer = torch.zeros(1, 7, 7)
    for row in (4, 5, 6):
        longer[0, row, row - 2] = 1.0
    assert repeated_scores(longer, 3).tolist() == [[1.0], [0.0]]


@pytest.mark.parametrize("max_length", [49, 256, 32])
def test_a_head_that_always_looks_equally_far_back_is_far_from_passing(max_length):
    """Such a head finds the token after the first occurrence only in sequences of one length."""
    lengths = repeated_lengths(max_length)
    assert 1 + 2 * max(lengths) <= max_length
    for offset in range(1, 2 * max(lengths)):
        passed = 0.0
        for length in lengths:
            rows = torch.arange(1 + 2 * length)
            weights = (rows[:, None] - rows == offset).float()[None]
            passed += length * float(repeated_scores(weights, length)[0]) / sum(lengths)
        assert passed < LEAST_INDUCTION / 2


def test_short_models_are_tested_as_far_as_they_read():
    assert repeated_lengths(49) == repeated_lengths(10_000) and max(repeated_lengths(49)) == 24
    assert set(repeated_lengths(5)) == {2}


def test_sequences_repeat_different_ordinary_tokens():
    lengths = (8, 5, 8)
    sequences = repeated_sequences(30, lengths, seed=3)
    for length, ids in zip(lengths, sequences, strict=True):
        assert ids.shape == (1 + 2 * length,) and ids[0] == START_ID
        assert torch.equal(ids[1 : 1 + length], ids[1 + length :])
        assert len(set(ids[1:].tolist())) == length
        assert ids[1:].min() >= len(SPECIAL_TOKENS) and ids.max() < 30
    assert not torch.equal(sequences[0], sequences[2])
    with pytest.raises(ValueError, match="length is 27; choose 2 to 26"):
        repeated_sequences(30, (8, 27), seed=0)


def test_only_decoder_only_models_are_tested(tiny_checkpoint):
    with pytest.raises(ValueError, match="tiny-bert is encoder-only; induction is looked for in decoder-only"):
        induction_test(tiny_checkpoint("bert"))


def test_the_loss_of_repeated_tokens_counts_the_second_time_only(tiny_checkpoint: Callable) -> None:
    checkpoint = tiny_checkpoint("gpt")
    config = checkpoint.config
    lengths = repeated_lengths(config.max_length)
    total, count = 0.0, 0
    with torch.inference_mode():
        for length, row in zip(lengths, repeated_sequences(config.vocabulary_size, lengths, seed=0), strict=True):
            logits = checkpoint.model(row[None, :-1])[0]
            for place in range(1 + length, 1 + 2 * length):
                total += float(F.cross_entropy(logits[place - 1], row[place]))
                count += 1
    assert repeated_loss(checkpoint) == pytest.approx(total / count, rel=1e-4)
    assert abs(repeated_loss(checkpoint) - math.log(config.vocabulary_size)) < 3


def test_the_curve_of_gpt_en_is_that_of_its_snapshots() -> None:
    checkpoint = transformer.load(ROOT / "checkpoints" / "gpt-en")
    history = pd.read_csv(checkpoint.path / "history.csv").dropna(subset="repeated_loss")
    *earlier, last = zip(history["step"], history["repeated_loss"], strict=True)
    for step, loss in earlier:
        assert repeated_loss(transformer.snapshot(checkpoint, step)) == pytest.approx(loss, rel=1e-4)
    assert repeated_loss(checkpoint) == pytest.approx(last[1], rel=1e-4)
