"""Scripts run one after the other, short ones first; a long one delays nobody for long."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor

import pytest
from streamlit.testing.v1 import AppTest

from tests.pages.conftest import is_fine
from ui.compute.turns import NEW, WEIGHT, Turns, Visitor, turns


def in_line(line: Turns) -> int:
    return len(line._line)


def come(
    line: Turns, visitors: Iterable[Visitor], work: Callable[[int], None], pool: ThreadPoolExecutor
) -> list[Future]:
    """Start the scripts one after the other, so that their order is known."""
    futures = []
    for number, visitor in enumerate(visitors):
        before = in_line(line)

        def take(number: int = number, visitor: Visitor = visitor) -> None:
            with line.next(visitor):
                work(number)

        futures.append(pool.submit(take))
        while in_line(line) == before:
            pass
    return futures


def order(line: Turns, visitors: list[Visitor]) -> list[int]:
    """Return the order of service if all arrive while one script runs."""
    served: list[int] = []
    with ThreadPoolExecutor(len(visitors)) as pool, line.next(Visitor()):
        futures = come(line, visitors, served.append, pool)
        assert not served
    for future in futures:
        future.result()
    return served


def use(line: Turns, work: Callable[[], object] = bool) -> bool:
    with line.next(Visitor()):
        work()
    return True


def test_alike_they_are_served_one_at_a_time_in_the_order_of_arrival() -> None:
    line, inside, served, most = Turns(longest=60), [], [], []

    def work(number: int) -> None:
        inside.append(number)
        most.append(len(inside))
        served.append(number)
        inside.remove(number)

    with ThreadPoolExecutor(20) as pool, line.next(Visitor()):
        futures = come(line, [Visitor() for _ in range(20)], work, pool)
        assert not served
    for future in futures:
        future.result()
    assert served == list(range(20))
    assert max(most) == 1
    assert in_line(line) == 0


def test_who_works_normally_goes_before_thirty_who_open_heavy_pages() -> None:
    assert order(Turns(longest=60), [Visitor() for _ in range(30)] + [Visitor(0.1)]) == [30, *range(30)]


def test_who_is_expected_to_take_longer_is_served_later() -> None:
    assert order(Turns(longest=60), [Visitor(2.0), Visitor(0.1), Visitor(8.0), Visitor(0.5)]) == [1, 3, 0, 2]


def test_nobody_waits_for_ever() -> None:
    """Every second of waiting makes up for a second of computing time, so even a long job gets its turn."""
    heavy, light = Visitor(2.0), [Visitor(0.0) for _ in range(3)]
    line = Turns(longest=60)
    served: list[int] = []
    with ThreadPoolExecutor(4) as pool, line.next(Visitor()):
        futures = come(line, [heavy], served.append, pool)
        line._line[0].due -= WEIGHT * 2.0  # as if it had arrived earlier by that time
        futures += come(line, light, lambda number: served.append(1 + number), pool)
    for future in futures:
        future.result()
    assert served == [0, 1, 2, 3]


def test_what_is_expected_follows_what_was_used() -> None:
    visitor = Visitor()
    assert visitor.expected == NEW
    visitor.has_used(0.0)
    assert visitor.expected == NEW / 2
    for _ in range(30):
        visitor.has_used(0.25)
    assert visitor.expected == pytest.approx(0.25)


def test_seconds_of_waiting_are_not_expected_of_the_next_script() -> None:
    visitor = Visitor(expected=0.0)
    with Turns().next(visitor):
        threading.Event().wait(0.2)
    assert visitor.expected < 0.1


@pytest.mark.slow
def test_who_takes_long_holds_up_only_those_of_one_turn() -> None:
    line, come_back = Turns(longest=0.05), threading.Event()
    with ThreadPoolExecutor(4) as pool:
        slow = pool.submit(lambda: use(line, come_back.wait))
        while not line._running:
            pass
        for _ in range(3):
            pool.submit(lambda: use(line)).result(timeout=30)  # while the slow script is still running
        assert not slow.done()
        come_back.set()
        assert slow.result(timeout=30)
    assert in_line(line) == 0


def test_who_waits_for_a_long_computation_lets_the_others_go_on() -> None:
    line, over, done = Turns(longest=600), threading.Event(), []

    def wait() -> None:
        with line.aside():
            over.wait()
        done.append("the one who waited")

    with ThreadPoolExecutor(2) as pool:
        waiting = pool.submit(use, line, wait)
        while line._turn is None or line._running:
            pass
        with line.next(Visitor()):  # at once, although no turn ends within ten minutes
            over.set()
            while in_line(line) == 0:  # a visitor who has waited is in line again
                pass
            done.append("the other")
        waiting.result(timeout=30)
    assert done == ["the other", "the one who waited"]
    assert not line._running


def test_a_part_of_a_page_waits_without_a_turn() -> None:
    line = Turns(longest=600)
    with ThreadPoolExecutor(1) as pool, line.next(Visitor()):

        def part() -> bool:
            with line.aside():
                return True

        assert pool.submit(part).result(timeout=30)


class StoppedByStreamlit(BaseException):
    pass


@pytest.mark.parametrize("aside", [False, True])
def test_a_script_that_is_stopped_gives_its_turn_back(aside: bool) -> None:
    line = Turns(longest=60)

    def stop() -> None:
        if aside:
            with line.aside():
                raise StoppedByStreamlit
        raise StoppedByStreamlit

    with pytest.raises(StoppedByStreamlit):
        use(line, stop)
    assert use(line)
    assert not line._running
    assert in_line(line) == 0


def test_no_page_keeps_its_turn(open_app: Callable[..., AppTest]) -> None:
    is_fine(open_app("tokens", checkpoint="tiny-gpt"))
    assert in_line(turns) == 0
    assert not turns._running
