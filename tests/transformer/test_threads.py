"""Many sessions share one model, and each gets bit for bit what it would get alone."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import numpy as np
import pytest
import torch

from transformer import Checkpoint, Edit, Greedy, Trace, ablate_edge, ablate_head, trace
from transformer.fast.shortcut import fast_path, uses_fast_path
from transformer.runs.mask_edits import mask_edit

N_THREADS, N_ROUNDS = 8, 3
SENTENCES = (
    "The cat sat on the mat.",
    "The dog sleeps.",
    "She is reading a book in the garden.",
    "We went to the sea, and the sea was cold.",
    "No.",
    "He never drinks coffee in the evening.",
    "My brother bought a car.",
    "It is raining.",
)
Tiny = Callable[[str], Checkpoint]


def fail(tensor: torch.Tensor) -> torch.Tensor:
    raise RuntimeError("inside an edit")


def edits_of(number: int, stack: str) -> tuple[Edit, ...]:
    """Return a different edit per thread; threads 0 and 4 have none, thread 7 always fails during a pass."""
    weights = f"{stack}.layers.1.self_attention.weights"
    return (
        (),
        (ablate_head(stack, layer=0, head=0),),
        (ablate_head(stack, layer=0, head=1), ablate_head(stack, layer=1, head=0)),
        (Edit(weights, torch.zeros_like),),
        (),
        (mask_edit(stack, layer=0, mask="no_causal"),),
        (ablate_edge(stack, layer=1, head=1, query=1, key=0),),
        (Edit(weights, fail),),
    )[number]


@pytest.fixture(autouse=True)
def frequent_switches() -> Iterator[None]:
    """Threads switch a thousand times as often as usual, so that races occur."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(5e-6)
    yield
    sys.setswitchinterval(interval)


def at_once(tasks: list[Callable[[], object]]) -> list[object]:
    """Run all tasks at the same time, each in its own thread."""
    barrier = Barrier(len(tasks))

    def start(task: Callable[[], object]) -> object:
        barrier.wait()
        return task()

    with ThreadPoolExecutor(len(tasks)) as pool:
        return [future.result() for future in [pool.submit(start, task) for task in tasks]]


def run(checkpoint: Checkpoint, number: int) -> Trace | str:
    stack = "decoder" if checkpoint.config.has_decoder else "encoder"
    strategy = Greedy(4) if checkpoint.config.has_decoder else None
    try:
        return trace(checkpoint, SENTENCES[number], edits=edits_of(number, stack), strategy=strategy)
    except RuntimeError as error:
        return str(error)


def same(one: Trace | str, other: Trace | str) -> bool:
    if isinstance(one, str) or isinstance(other, str):
        return one == other
    return (
        (one.source, one.target, one.prediction, one.text) == (other.source, other.target, other.prediction, other.text)
        and one.names() == other.names()
        and all(np.array_equal(one.values(name), other.values(name)) for name in one.names())
    )


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["translator", "gpt", "bert", "sentiment"])
def test_eight_threads_with_different_edits_get_what_each_gets_alone(kind: str, tiny_checkpoint: Tiny) -> None:
    checkpoint = tiny_checkpoint(kind)
    alone = [run(checkpoint, number) for number in range(N_THREADS)]
    assert alone[7] == "inside an edit"
    assert not same(alone[1], trace(checkpoint, SENTENCES[1])), "an edit that changes nothing proves nothing"
    for _ in range(N_ROUNDS):
        together = at_once([lambda n=n: run(checkpoint, n) for n in range(N_THREADS)])
        for number in range(N_THREADS):
            assert same(together[number], alone[number]), f"thread {number} got something else"


def test_the_fast_path_of_one_thread_is_not_that_of_another() -> None:
    inside = Barrier(2, timeout=60)

    def fast() -> bool:
        with fast_path():
            inside.wait()
            inside.wait()
            return uses_fast_path()

    def readable() -> bool:
        inside.wait()
        result = uses_fast_path()
        inside.wait()
        return result

    assert at_once([fast, readable]) == [True, False]
