"""Runs can be stopped before their next forward pass; others on the same model continue."""

from __future__ import annotations

import threading
from collections.abc import Callable

import numpy as np
import pytest

import transformer
from transformer.attribution.attention_trust import input_attributions
from transformer.attribution.leave_one_out import leave_one_out
from transformer.interventions.head_importance import importance_by_chunks
from transformer.predictions.target import quantity_of
from transformer.probes import interruptible
from transformer.runs.head_places import all_heads

SENTENCE = "The dog sleeps under the table."


class Stopped(Exception):
    pass


def after(passes: int) -> Callable[[], None]:
    """Allow this many passes to begin."""
    left = [passes]

    def ask() -> None:
        if not left[0]:
            raise Stopped
        left[0] -= 1

    return ask


WORK = {  # what is stopped before its n-th pass
    "attributions": lambda trace: input_attributions(
        trace.checkpoint, quantity_of(trace, row=0, of="log_probability"), n_steps=32
    ),
    "importance": lambda trace: list(importance_by_chunks(trace, heads=all_heads(trace.checkpoint.config))),
    "beam": lambda trace: transformer.decode(trace.checkpoint, SENTENCE, transformer.Beam(width=3)),
    "leave one out": lambda trace: leave_one_out(trace.checkpoint, SENTENCE),
}
STOPS = [
    *((kind, *work) for kind in ("translator", "gpt", "bert", "sentiment")
      for work in (("attributions", 0), ("attributions", 2), ("importance", 0))),
    ("translator", "beam", 3),
    ("sentiment", "leave one out", 0),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "work", "passes"), STOPS)
def test_work_ends_before_the_next_pass(tiny_checkpoint: Callable, kind: str, work: str, passes: int) -> None:
    checkpoint = tiny_checkpoint(kind)
    target = SENTENCE if checkpoint.config.has_decoder else None
    trace = transformer.trace(checkpoint, SENTENCE, target)
    with pytest.raises(Stopped), interruptible(after(passes)):
        WORK[work](trace)
    again = transformer.trace(checkpoint, SENTENCE, target)  # nothing remains of it
    np.testing.assert_array_equal(trace.values(trace.names()[-1]), again.values(again.names()[-1]))


def test_every_stack_asks_once_before_each_of_its_passes(tiny_checkpoint: Callable) -> None:
    checkpoint, asked = tiny_checkpoint("translator"), []
    with interruptible(lambda: asked.append(1)):
        decoding = transformer.decode(checkpoint, SENTENCE, transformer.Greedy(3))
        assert len(asked) == 1 + len(decoding.steps)
        asked.clear()
        transformer.trace(checkpoint, SENTENCE, SENTENCE)
        assert len(asked) == 2


def test_another_thread_on_the_same_model_goes_on(tiny_checkpoint: Callable) -> None:
    checkpoint, found = tiny_checkpoint("bert"), []
    with interruptible(after(0)):
        thread = threading.Thread(target=lambda: found.append(transformer.trace(checkpoint, SENTENCE).text))
        thread.start()
        thread.join()
        with pytest.raises(Stopped):
            transformer.trace(checkpoint, SENTENCE)
    assert found == [transformer.trace(checkpoint, SENTENCE).text]
