"""An induction head built by hand is found, and nothing else is; random weights have none."""

from __future__ import annotations

import pytest
import torch

from tests.transformer.copying import COPYING, copying_checkpoint
from tests.transformer.inducing import INDUCTION, PREVIOUS, induction_checkpoint
from transformer.analysis.heads.induction import induction_test, repeated_scores, repeated_sequences
from transformer.text.tokenizer import SPECIAL_TOKENS, START_ID


def test_the_head_that_was_built_for_it_is_the_only_induction_head(tiny_tokenizer):
    found = induction_test(induction_checkpoint(tiny_tokenizer))
    assert found.length == 15  # the model reads 32 tokens
    assert found.heads == (INDUCTION,)
    assert found.strongest == INDUCTION and found.induction[INDUCTION] > 0.95
    assert found.previous[PREVIOUS] > 0.95 and found.induction[PREVIOUS] < 0.05
    even = (0, 0)  # it spreads its attention evenly
    assert found.induction[even] == pytest.approx(found.chance, abs=1e-6)
    assert found.previous[even] == pytest.approx(found.chance, abs=1e-6)


def test_a_head_that_copies_the_previous_token_is_no_induction_head(tiny_tokenizer):
    found = induction_test(copying_checkpoint(tiny_tokenizer))
    assert found.heads == ()
    assert found.previous[0, COPYING] > 0.95 and found.induction[0, COPYING] < 0.05


def test_random_weights_have_no_induction_head(tiny_checkpoint):
    found = induction_test(tiny_checkpoint("gpt"))
    assert found.heads == ()
    assert set(found.induction) == {(layer, head) for layer in (0, 1) for head in (0, 1)}
    assert found == induction_test(tiny_checkpoint("gpt"))
    assert found != induction_test(tiny_checkpoint("gpt"), seed=1)


def test_scores_are_read_at_the_token_after_the_first_place():
    """n = 2: <s> a b a b. The second a (row 3) must look at b (2), the second b (row 4) at the a that followed (3)."""
    weights = torch.zeros(1, 2, 5, 5)
    weights[0, 0, 3, 2], weights[0, 0, 4, 3] = 0.5, 0.25
    weights[0, 1, 3, 1], weights[0, 1, 4, 2] = 1.0, 1.0  # the first places themselves: no induction
    induction, previous = repeated_scores(weights, 2)
    assert induction.tolist() == [0.375, 0.0]
    assert previous.tolist() == [0.375, 0.0]  # with two tokens the previous one is that very place
    longer = torch.zeros(1, 1, 7, 7)
    for row in (4, 5, 6):
        longer[0, 0, row, row - 2] = 1.0
    induction, previous = repeated_scores(longer, 3)
    assert (induction.tolist(), previous.tolist()) == ([1.0], [0.0])


def test_sequences_repeat_different_ordinary_tokens():
    ids = repeated_sequences(30, length=8, n_sequences=5, seed=3)
    assert ids.shape == (5, 17)
    assert (ids[:, 0] == START_ID).all()
    assert torch.equal(ids[:, 1:9], ids[:, 9:])
    assert all(len(set(row)) == 8 for row in ids[:, 1:9].tolist())
    assert ids[:, 1:].min() >= len(SPECIAL_TOKENS) and ids.max() < 30
    with pytest.raises(ValueError, match="length is 27; choose 2 to 26"):
        repeated_sequences(30, length=27, n_sequences=1, seed=0)


def test_only_decoder_only_models_are_tested(tiny_checkpoint):
    with pytest.raises(ValueError, match="tiny-bert is encoder-only; induction is looked for in decoder-only"):
        induction_test(tiny_checkpoint("bert"))
