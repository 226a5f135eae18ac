"""The view model of the Checkpoint page: sizes, parameters and configuration as they are on disk."""

from __future__ import annotations

import pytest

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
