"""What the sidebar says about a model's task."""

from __future__ import annotations

import pytest

from transformer.config import ModelConfig
from transformer.guests.guest_config import GuestConfig
from ui.shell.focus_controls import work_of

SIZES = {"vocabulary_size": 50, "d_model": 16, "n_heads": 2, "d_ff": 24, "n_encoder_layers": 1, "n_decoder_layers": 1}


@pytest.mark.parametrize(
    ("family", "work"),
    [("t5", "text-to-text"), ("bart", "text-to-text"), ("marian", "encoder-decoder"), ("m2m_100", "encoder-decoder")],
)
def test_of_a_foreign_encoder_decoder_only_families_of_translators_translate(family: str, work: str) -> None:
    assert work_of(GuestConfig(family=family, **SIZES)) == work


def test_our_own_translates_unless_it_was_given_tasks() -> None:
    assert work_of(ModelConfig(**SIZES)) == "encoder-decoder"
    assert work_of(ModelConfig(task_prefixes=("fill: ",), **SIZES)) == "text-to-text"
