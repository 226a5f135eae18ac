"""Progress bars of tqdm on standard error."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from tqdm import tqdm

if TYPE_CHECKING:
    from transformer.training.trainer import Trainer


def progress_bar(items: Iterable) -> Iterable:
    """Iterate with a progress bar if there is a terminal."""
    return tqdm(items, unit="sentence", disable=None)  # None: silent without a terminal


_SHORTEST = 1.0  # seconds; times in the history are rounded, so a rate over less is meaningless


class TrainingProgress:
    """Loss, target tokens per second and time left; one line per log interval.

    The rate is computed over at least a second; until then it is not shown.
    """

    def __init__(self, trainer: Trainer) -> None:
        self._bar = tqdm(
            total=trainer.recipe.steps,
            initial=trainer.step,
            unit="step",
            desc=trainer.recipe.name,
            disable=not trainer.accelerator.is_main_process,
        )
        self._before = (trainer.target_tokens, trainer.seconds)
        self._rate = ""

    def __enter__(self) -> TrainingProgress:
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.close()

    def __call__(self, row: dict[str, float]) -> None:
        """Show one row of the history."""
        tokens, seconds = self._before
        if (passed := row["seconds"] - seconds) >= _SHORTEST:
            self._rate = f", {(row['target_tokens'] - tokens) / passed:,.0f} target tokens/s"
            self._before = (row["target_tokens"], row["seconds"])
        self._bar.update(row["step"] - self._bar.n)
        self._bar.set_postfix_str(f"loss {row['train_loss']:.3f}{self._rate}")
        if "dev_score" in row:
            pairs = f", next sentence {row['next_sentence_accuracy']:.1%}" if "next_sentence_accuracy" in row else ""
            self._bar.write(
                f"step {row['step']}: dev loss {row['dev_loss']:.3f}, dev score {row['dev_score']:.2f}{pairs}"
            )
