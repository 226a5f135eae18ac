"""Scripts run one after the other, in the order in which they came; one that takes long holds nobody up for long."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from streamlit.testing.v1 import AppTest

from tests.pages.conftest import is_fine
from ui.compute.turns import Turns, turns


def in_line(line: Turns) -> int:
    with line._lock:
        return len(line._line)


def come(line: Turns, count: int, work: Callable[[int], None], pool: ThreadPoolExecutor) -> list:
    """One after the other, so that their order is known."""
    futures = []
    for number in range(count):
        before = in_line(line)

        def take(number: int = number) -> None:
            with line.next():
                work(number)

        futures.append(pool.submit(take))
        while in_line(line) == before:
            pass
    return futures


def test_one_at_a_time_in_the_order_of_arrival() -> None:
    line, inside, order, most = Turns(longest=60), [], [], []

    def work(number: int) -> None:
        inside.append(number)
        most.append(len(inside))
        order.append(number)
        inside.remove(number)

    with ThreadPoolExecutor(20) as pool, line.next():
        futures = come(line, 20, work, pool)
        assert not order
    for future in futures:
        future.result()
    assert order == list(range(20))
    assert max(most) == 1
    assert in_line(line) == 0


def test_who_takes_long_holds_up_only_those_of_one_turn() -> None:
    line, come_back = Turns(longest=0.05), threading.Event()
    with ThreadPoolExecutor(4) as pool:
        slow = pool.submit(lambda: use(line, come_back.wait))
        while in_line(line) == 0:
            pass
        for _ in range(3):
            pool.submit(lambda: use(line)).result(timeout=30)  # while the slow one is still inside
        assert not slow.done()
        come_back.set()
        assert slow.result(timeout=30)
    assert in_line(line) == 0


def use(line: Turns, work: Callable[[], object] = bool) -> bool:
    with line.next():
        work()
    return True


class StoppedByStreamlit(BaseException):
    pass


def test_a_script_that_is_stopped_gives_its_turn_back() -> None:
    line = Turns(longest=60)
    with pytest.raises(StoppedByStreamlit), line.next():
        raise StoppedByStreamlit
    assert use(line)


def test_no_page_keeps_its_turn(open_app: Callable[..., AppTest]) -> None:
    is_fine(open_app("tokens", checkpoint="tiny-gpt"))
    assert in_line(turns) == 0
