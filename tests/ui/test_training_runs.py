"""Runs in the background: they wait their turn, stop when told to, and end when nobody looks any more."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator

import pytest

from ui.compute.jobs import PLACES, Places
from ui.compute.limits import limits
from views.training.background_trainings import Progress, Run

SOON = 20.0  # seconds within which what must happen happens, also on a busy machine


def until(condition: Callable[[], bool]) -> bool:
    """Whether ``condition`` becomes true soon."""
    end = time.monotonic() + SOON
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.01)
    return False


def counting(limit: int | None = None, *, pause: float = 0.005) -> Callable[[], Iterator[int]]:
    def begin() -> Iterator[int]:
        number = 0
        while limit is None or number < limit:
            yield number
            number += 1
            time.sleep(pause)

    return begin


@pytest.fixture
def start() -> Iterator[Callable[..., Run[int]]]:
    """``start(begin, …)`` → a run that surely ends with the test."""
    runs: list[Run[int]] = []

    def make(begin: Callable[[], Iterator[int]], **settings) -> Run[int]:
        runs.append(Run(begin, **{"places": Places(2), **settings}))
        return runs[-1]

    yield make
    for run in runs:
        run.stop()
    assert all(run.join(SOON) for run in runs)


def status(run: Run[int]) -> str:
    return run.look().status


def test_a_run_ends_by_itself_with_all_its_states(start: Callable[..., Run[int]]) -> None:
    run = start(counting(5))
    assert until(lambda: run.look().over)
    progress = run.look()
    assert progress.status == "finished" and progress.states == (0, 1, 2, 3, 4) and progress.problem == ""
    assert progress.seconds > 0 and run.join(SOON)
    time.sleep(0.05)
    assert run.look().seconds == progress.seconds  # the clock has stopped


def test_stop_ends_it_and_what_was_found_stays(start: Callable[..., Run[int]]) -> None:
    run = start(counting())
    assert until(lambda: len(run.look().states) > 3)
    assert status(run) == "running"
    run.stop()
    assert run.join(SOON)
    progress = run.look()
    assert progress.status == "stopped" and progress.over
    assert progress.states == tuple(range(len(progress.states)))


def test_a_run_that_nobody_looks_at_ends(start: Callable[..., Run[int]]) -> None:
    begun = time.monotonic()
    run = start(counting(), patience=0.3)
    assert run.join(SOON)
    assert time.monotonic() - begun >= 0.3
    assert status(run) == "left" and run.look().states


def test_looking_keeps_it_going(start: Callable[..., Run[int]]) -> None:
    run = start(counting(), patience=2.0)
    end = time.monotonic() + 3.0
    while time.monotonic() < end:
        assert status(run) in ("waiting", "running")
        time.sleep(0.05)


def test_a_failure_becomes_a_sentence_and_frees_the_place(start: Callable[..., Run[int]]) -> None:
    def fails() -> Iterator[int]:
        yield 1
        raise FloatingPointError("the loss was no number any more")

    places = Places(1)
    run = start(fails, places=places)
    assert until(lambda: run.look().over)
    progress = run.look()
    assert (progress.status, progress.problem, progress.states) == ("failed", "the loss was no number any more", (1,))
    after = start(counting(2), places=places)
    assert until(lambda: status(after) == "finished")


def test_a_run_that_cannot_even_begin_fails_with_a_sentence(start: Callable[..., Run[int]]) -> None:
    def fails() -> Iterator[int]:
        raise ValueError

    run = start(fails)
    assert until(lambda: run.look().over)
    assert run.look().problem == "ValueError"


def test_only_so_many_run_at_once_and_the_others_come_in_order(start: Callable[..., Run[int]]) -> None:
    places, going, most, lock = Places(2), set(), [0], threading.Lock()
    order: list[int] = []

    def numbered(number: int) -> Callable[[], Iterator[int]]:
        def begin() -> Iterator[int]:
            with lock:
                order.append(number)
                going.add(number)
                most[0] = max(most[0], len(going))
            try:
                for step in range(10):
                    time.sleep(0.01)
                    yield step
            finally:
                with lock:
                    going.discard(number)

        return begin

    runs = []
    for number in range(6):
        runs.append(start(numbered(number), places=places))
        assert until(lambda run=runs[-1], n=number: run.look().over or n in order or run.look().number > 0)
    assert until(lambda: all(run.look().over for run in runs))
    assert [status(run) for run in runs] == ["finished"] * 6
    assert most[0] == 2 and order[2:] == [2, 3, 4, 5] and sorted(order[:2]) == [0, 1]


def test_who_waits_knows_the_place_and_may_leave_the_queue(start: Callable[..., Run[int]]) -> None:
    places = Places(1)
    first = start(counting(), places=places)
    assert until(lambda: status(first) == "running")
    waiting = []
    for _ in range(3):
        waiting.append(start(counting(), places=places))
        assert until(lambda: waiting[-1].look().number == len(waiting))
    progress: Progress[int] = waiting[2].look()
    assert (progress.status, progress.number, progress.states, progress.seconds) == ("waiting", 3, (), 0.0)
    waiting[0].stop()
    assert until(lambda: status(waiting[0]) == "stopped")
    assert [run.look().number for run in waiting] == [0, 1, 2]
    first.stop()
    assert until(lambda: status(waiting[1]) == "running")
    assert waiting[2].look().number == 1 and waiting[1].look().number == 0


def test_who_waits_and_is_not_looked_at_leaves_the_queue(start: Callable[..., Run[int]]) -> None:
    places = Places(1)
    first = start(counting(), places=places)
    assert until(lambda: status(first) == "running")
    gone = start(counting(), places=places, patience=0.3)
    assert gone.join(SOON)
    assert status(gone) == "left" and not gone.look().states


def test_all_sessions_of_the_app_share_the_same_places() -> None:
    assert limits().jobs == 2
    runs = [Run(counting()) for _ in range(3)]
    try:
        assert until(lambda: sorted(status(run) for run in runs) == ["running", "running", "waiting"])
        assert sum(PLACES.number(run) for run in runs) == 1
    finally:
        for run in runs:
            run.stop()
        assert all(run.join(SOON) for run in runs)
