"""A model before training: its weights come from a seed alone."""

from __future__ import annotations

import pytest
import torch

import transformer
from tests.conftest import ROOT
from transformer.files.build import random_model

NAMES = ("en-fr", "gpt-en", "bert-en-pairs", "sentiment", "t5-small-tasks", "vit-digits")


@pytest.mark.parametrize("name", NAMES)
def test_random_weights_are_those_that_a_training_with_the_seed_begins_with(name: str) -> None:
    config = transformer.load(ROOT / "checkpoints" / name).config
    state = torch.random.get_rng_state()
    drawn = random_model(config, seed=7)
    assert torch.equal(torch.random.get_rng_state(), state), "other threads use torch's generator"
    with torch.random.fork_rng():
        torch.manual_seed(7)
        expected = transformer.build_model(config).state_dict()
    for weight, (key, value) in zip(drawn.state_dict().values(), expected.items(), strict=True):
        assert torch.equal(weight, value), key
    assert not drawn.training


def test_another_seed_gives_other_weights(tiny_checkpoint) -> None:
    checkpoint = tiny_checkpoint("tiny-gpt")
    first, again, other = (transformer.untrained(checkpoint, seed=seed).model.state_dict() for seed in (0, 0, 1))
    assert all(torch.equal(first[key], again[key]) for key in first)
    assert any(not torch.equal(first[key], other[key]) for key in first)


def test_it_is_never_taken_for_the_trained_checkpoint(tiny_checkpoint) -> None:
    checkpoint = tiny_checkpoint("tiny-translator")
    drawn = [transformer.untrained(checkpoint, seed=seed) for seed in (0, 1)]
    runs = {transformer.Run(one, "The cat.") for one in (checkpoint, *drawn)}
    assert len({one.fingerprint for one in (checkpoint, *drawn)}) == len(runs) == 3
    assert transformer.untrained(checkpoint).fingerprint == drawn[0].fingerprint
    assert drawn[0].model is not checkpoint.model


def test_a_third_party_model_has_no_untrained_one(family) -> None:
    with pytest.raises(ValueError, match="third-party"):
        transformer.untrained(family("hf-gpt2"))
