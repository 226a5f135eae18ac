"""The view model of the Checkpoint page: sizes, parameters and configuration as they are on disk."""

from __future__ import annotations

import pytest

import transformer
from transformer.files.checkpoints import WEIGHTS
from views.checkpoint.checkpoint_view_model import CheckpointViewModel


@pytest.mark.parametrize("name", ["tiny-translator", "tiny-gpt", "tiny-bert", "tiny-sentiment"])
def test_what_is_in_a_checkpoint(tiny_checkpoint, name):
    checkpoint = tiny_checkpoint(name)
    view_model = CheckpointViewModel(checkpoint)
    assert view_model.n_parameters == sum(row.numbers for row in view_model.parameters())
    assert view_model.vocabulary_size == checkpoint.config.vocabulary_size
    assert view_model.megabytes == (checkpoint.path / WEIGHTS).stat().st_size / 1e6
    assert view_model.settings["d_model"] == str(checkpoint.config.d_model)


@pytest.mark.parametrize("name", ["en-fr", "vit-digits"])
def test_two_kinds_of_parts_hold_most_of_the_numbers_and_all_together_hold_them_all(name):
    view_model = CheckpointViewModel(transformer.load(f"checkpoints/{name}"))
    shares = list(view_model.shares.values())
    assert sum(shares) == pytest.approx(100) and shares == sorted(shares, reverse=True)
    assert sum(shares[:2]) > 50, "the page says so"
    feed_forward = sum(row.numbers for row in view_model.parameters() if ".feed_forward." in row.name)
    assert view_model.shares["feed-forward"] == pytest.approx(100 * feed_forward / view_model.n_parameters)
