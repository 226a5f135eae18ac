"""The queue for long computations, scripts of pages and seats: order, shares, and what frees a slot."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from streamlit.testing.v1 import AppTest

from tests.pages.conftest import is_fine
from tests.ui.test_jobs import SOON, until
from ui.compute.queue import LONGEST, SCRIPTS, Queue


def seats(count: int, here: set, **more) -> Queue:
    return Queue(count, is_here=here.__contains__, **more)


# ---- scripts of pages -----------------------------------------------------------------------------------------------


def enter_in_order(queue: Queue, names: str, work: Callable[[str], None]) -> list[threading.Thread]:
    """Let one thread per letter wait for a slot, and return once all are in line."""
    threads = []
    for place, name in enumerate(names, start=1):

        def take(name: str = name) -> None:
            with queue.slot(name):
                work(name)

        threads.append(threading.Thread(target=take))
        threads[-1].start()
        assert until(lambda name=name, place=place: queue.position(name) == place)
    return threads


def test_scripts_run_one_at_a_time_in_the_order_of_arrival() -> None:
    queue, inside, served, most = Queue(1), set(), [], []

    def work(name: str) -> None:
        inside.add(name)
        most.append(len(inside))
        served.append(name)
        inside.discard(name)

    with queue.slot("first"):
        threads = enter_in_order(queue, "abcdefghijklmnopqrst", work)
        assert not served
    for thread in threads:
        thread.join(SOON)
    assert "".join(served) == "abcdefghijklmnopqrst" and max(most) == 1


def test_a_slow_script_holds_up_the_others_for_one_turn_only() -> None:
    queue, go = Queue(1, lasts=0.05), threading.Event()
    (slow,) = [threading.Thread(target=lambda: [queue.enter("slow"), go.wait(SOON), queue.leave("slow")])]
    slow.start()
    for thread in enter_in_order(queue, "a", lambda _: None):
        thread.join(SOON)
    assert slow.is_alive(), "no script is stopped"
    go.set()
    slow.join(SOON)
    assert queue.ask("next") == 0


class StoppedByStreamlit(BaseException):
    pass


def test_a_script_that_is_stopped_gives_its_slot_back() -> None:
    queue = Queue(1)
    with pytest.raises(StoppedByStreamlit), queue.slot("a"):
        raise StoppedByStreamlit
    assert queue.ask("b") == 0


def test_a_page_that_waits_for_a_long_computation_lets_the_others_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SCRIPTS, "_lasts", SOON)
    begun, go = threading.Event(), threading.Event()

    def script(begun, go) -> None:
        from ui.compute.jobs import LongJobs, this_session
        from ui.compute.queue import SCRIPTS
        from ui.compute.store import Store

        with SCRIPTS.slot(this_session()):
            LongJobs(Store({"results": 1000})).result("a", "test", lambda _: [begun.set(), go.wait(60)])

    app = AppTest.from_function(script, args=(begun, go), default_timeout=SOON)
    page = threading.Thread(target=app.run)
    page.start()
    assert begun.wait(SOON) and until(lambda: SCRIPTS.ask("somebody") == 0), "the page waits, and keeps no slot"
    SCRIPTS.leave("somebody")
    go.set()
    page.join(SOON)
    assert not app.exception


def test_no_page_keeps_its_slot(open_app: Callable[..., AppTest]) -> None:
    is_fine(open_app("tokens", checkpoint="tiny-gpt"))
    assert SCRIPTS.ask("somebody") == 0 and LONGEST < 1
    SCRIPTS.leave("somebody")


# ---- seats of a full server -----------------------------------------------------------------------------------------


def test_a_seat_goes_to_the_first_in_line_who_is_still_there() -> None:
    here = set("abcde")
    queue = seats(2, here)
    assert [queue.ask(who) for who in "abcde"] == [0, 0, 1, 2, 3]
    assert queue.ask("d") == 2  # asking again changes nothing
    here -= {"c"}  # first in line, but disconnected
    assert queue.ask("e") == 2
    here -= {"a"}
    assert queue.ask("e") == 1  # the free seat is d's, who has not asked yet
    assert queue.ask("d") == 0
    here -= {"b"}
    assert queue.ask("e") == 0
    here |= {"a"}
    assert queue.ask("a") == 1  # a visitor who left is last in line


def test_an_idle_seat_goes_only_to_a_waiting_visitor() -> None:
    now = [0.0]
    queue = seats(2, set("abcde"), lasts=60, clock=lambda: now[0])
    assert [queue.ask(who) for who in "ab"] == [0, 0]
    now[0] = 1000.0
    assert [queue.ask(who) for who in "ba"] == [0, 0]  # nobody waited
    now[0] = 1059.0
    assert [queue.ask(who) for who in "cde"] == [1, 2, 3]  # not idle for long enough
    assert queue.ask("b") == 0
    now[0] = 1060.0
    assert queue.ask("d") == 1  # a's seat goes to c, who is ahead of d
    assert queue.ask("a") == 3  # a returning visitor is last in line
    assert [queue.ask(who) for who in "cb"] == [0, 0]
    now[0] = 1120.0
    assert [queue.ask(who) for who in "dea"] == [0, 0, 1]  # both were idle; the third has no seat to take
    assert [queue.ask(who) for who in "bc"] == [2, 3]


def test_only_as_many_idle_seats_are_taken_as_somebody_waits_for() -> None:
    now = [0.0]
    queue = seats(3, set("abcd"), lasts=60, clock=lambda: now[0])
    for who in "abc":
        now[0] += 1
        assert queue.ask(who) == 0
    now[0] = 500.0
    assert queue.ask("d") == 0  # a was idle longest
    assert [queue.ask(who) for who in "bca"] == [0, 0, 1]


def test_twice_as_many_visitors_as_seats_are_all_served_and_never_more_than_there_are_seats() -> None:
    """Sixty sessions ask for thirty seats at the same moments; each served visitor yields to the next."""
    here, lock = set(range(60)), threading.Lock()
    queue, inside, most, wrong = seats(30, here), set(), [], []

    def visit(who: int) -> None:
        last = 60
        while (place := queue.ask(who)) > 0:
            wrong.extend([(who, place, last)] if place > last else [])  # a position in the line only decreases
            last = place
            time.sleep(0.001)
        with lock:
            inside.add(who)
            most.append(len(inside))
        wrong.extend((who, "lost its seat") for _ in range(5) if queue.ask(who) != 0)
        with lock:
            inside.discard(who)
            here.discard(who)

    with ThreadPoolExecutor(60) as pool:
        list(pool.map(visit, range(60)))
    assert not here and not wrong and max(most) <= 30
