"""The bar of a training run shows a rate only after enough time."""

from __future__ import annotations

import re
from types import SimpleNamespace

import pytest

from transformer.training.progress import TrainingProgress


def test_the_rate_is_taken_over_a_second_at_least(capsys: pytest.CaptureFixture[str]) -> None:
    """Rows within a tenth of a second have equal rounded times, which would give an absurd rate."""
    trainer = SimpleNamespace(
        recipe=SimpleNamespace(steps=100, name="n"),
        accelerator=SimpleNamespace(is_main_process=True),
        step=0,
        target_tokens=0,
        seconds=0.0,
    )
    shown = []
    with TrainingProgress(trainer) as progress:
        for step, seconds in ((1, 0.0), (2, 0.0), (3, 0.6), (4, 2.0), (5, 2.0), (6, 4.0)):
            row = {"step": step, "seconds": seconds, "target_tokens": 1_000 * step, "train_loss": 1.0}
            progress(row)
            shown.append(re.findall(r"([\d,]+) target tokens/s", progress._bar.postfix))
    assert shown == [[], [], [], ["2,000"], ["2,000"], ["1,000"]]
    assert "loss 1.000, 1,000 target tokens/s" in capsys.readouterr().err
