"""Runs can be stopped before their next forward pass; others on the same model continue."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
import torch

import transformer
from transformer.attribution.attention_trust import input_attributions
from transformer.attribution.leave_one_out import leave_one_out
from transformer.interventions.head_importance import importance_by_chunks
from transformer.predictions.quantity import quantity_of
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


def attributions(checkpoint: transformer.Checkpoint, trace: transformer.Trace) -> object:
    quantity = quantity_of(trace, row=0, of="log_probability")
    return input_attributions(checkpoint, quantity, n_steps=32)


def importance(checkpoint: transformer.Checkpoint, trace: transformer.Trace) -> object:
    return list(importance_by_chunks(trace, heads=all_heads(checkpoint.config)))


@pytest.mark.parametrize("kind", ["translator", "gpt", "bert", "sentiment"])
@pytest.mark.parametrize(("work", "passes"), [(attributions, 0), (attributions, 2), (importance, 0)])
def test_work_ends_before_the_next_pass(tiny_checkpoint: Callable, kind: str, work: Callable, passes: int) -> None:
    checkpoint = tiny_checkpoint(kind)
    trace = transformer.trace(checkpoint, SENTENCE, **({"target": SENTENCE} if checkpoint.config.has_decoder else {}))
    with pytest.raises(Stopped), interruptible(after(passes)):
        work(checkpoint, trace)
    # No trace of it remains: the same model gives the same result again.
    again = transformer.trace(checkpoint, SENTENCE, **({"target": SENTENCE} if checkpoint.config.has_decoder else {}))
    name = trace.names()[-1]
    assert torch.equal(torch.tensor(trace[name].values), torch.tensor(again[name].values))


def test_decoding_and_leaving_out_end_too(tiny_checkpoint: Callable) -> None:
    with pytest.raises(Stopped), interruptible(after(3)):
        transformer.decode(tiny_checkpoint("translator"), SENTENCE, transformer.Beam(width=3))
    with pytest.raises(Stopped), interruptible(after(0)):
        leave_one_out(tiny_checkpoint("sentiment"), SENTENCE)


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
