"""Long computations: few at a time, fair, cancelled without watchers, and computed once for all."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from weakref import ref

import pytest
from streamlit.testing.v1 import AppTest

from ui.compute import jobs as long_jobs
from ui.compute.jobs import QUEUE, Job, JobStopped, LongJobs
from ui.compute.queue import Queue
from ui.compute.store import Store
from ui.server.settings import settings

SOON = 60.0  # time limit for expected events, also on a busy machine


def until(condition: Callable[[], bool]) -> bool:
    """Return whether ``condition`` becomes true soon."""
    end = time.monotonic() + SOON
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.01)
    return False


class Work:
    """Work that continues until it is told to end or is stopped, and counts its starts."""

    def __init__(self, result: object = "done", *, ends: bool = False) -> None:
        self.begun, self.ended, self.go = 0, 0, threading.Event()
        self.result = result
        if ends:
            self.go.set()

    def __call__(self, report: Callable[[int, int], None]) -> object:
        self.begun += 1
        try:
            while not self.go.wait(0.01):
                report(1, 4)
            return self.result
        finally:
            self.ended += 1


@pytest.fixture
def start() -> Iterator[Callable[..., Job]]:
    """``start(work, …)`` returns a job that a visitor "me" watches, and that ends with the test."""
    jobs: list[Job] = []

    def make(work: Callable, **settings) -> Job:
        job = Job(work, **{"queue": Queue(2), "patience": SOON, **settings})
        jobs.append(job)
        job.start("me")
        return job

    yield make
    for job in jobs:
        for who in ("me", "you"):
            job.leave(who, at_once=True)
    assert all(job.wait(SOON) for job in jobs)


def test_only_so_many_run_at_once_and_the_others_come_in_turn(start: Callable[..., Job]) -> None:
    queue, works = Queue(2, share=SOON), [Work(number) for number in range(4)]
    jobs = []
    for work in works:
        jobs.append(start(work, queue=queue))
        assert until(lambda: jobs[-1].status == "running" or queue.position(jobs[-1]) > 0)
    assert [job.status for job in jobs] == ["running", "running", "waiting", "waiting"]
    assert [job.before for job in jobs[2:]] == [0, 1]
    works[1].go.set()
    assert until(lambda: jobs[2].status == "running") and jobs[3].status == "waiting" and jobs[3].before == 0
    for work in works:
        work.go.set()
    assert all(job.wait(SOON) for job in jobs)
    assert [job.result for job in jobs] == [0, 1, 2, 3]


def test_who_leaves_ends_the_work_at_its_next_step_or_the_line_and_frees_the_place(start: Callable[..., Job]) -> None:
    """A part of the page that redraws itself may poll once more after Stop; that revives nothing."""
    queue, work, never, last = Queue(1, share=SOON), Work(), Work(), Work()
    job = start(work, queue=queue)
    assert until(lambda: bool(work.begun))
    waits = start(never, queue=queue)
    assert until(lambda: queue.position(waits) == 1)
    after = start(last, queue=queue)
    waits.leave("me", at_once=True)
    assert waits.wait(SOON) and waits.stopped and never.begun == 0 and queue.position(waits) == 0
    job.leave("me", at_once=True)
    job.look("me")
    assert job.wait(SOON) and job.stopped and job.result is None and work.ended == 1
    assert until(lambda: bool(last.begun)) and (job.status, after.status) == ("stopped", "running")


def test_it_goes_on_for_the_other_one_who_looks(start: Callable[..., Job]) -> None:
    work = Work()
    job = start(work)
    job.look("you")
    job.leave("me", at_once=True)
    assert not job.wait(0.2)
    work.go.set()
    assert job.wait(SOON) and job.result == "done" and job.status == "finished"


def test_a_browser_that_is_closed_ends_it_without_saying_so(start: Callable[..., Job]) -> None:
    queue, work = Queue(1, share=SOON), Work()
    job = start(work, patience=0.1)
    assert job.wait(SOON) and job.status == "left" and work.ended == 1
    start(Work(), queue=queue)
    waits, after = (start(Work(), queue=queue, patience=patience) for patience in (0.1, SOON))
    assert waits.wait(SOON) and waits.stopped and after.before == 0, "a visitor who has left the line delays no other"


def test_its_clock_runs_from_its_start_to_its_end_and_it_says_how_much_is_done(start: Callable[..., Job]) -> None:
    queue, work = Queue(1, share=SOON), Work()
    job = start(work, queue=queue)
    assert until(lambda: job.progress == (1, 4)) and job.share == 0.25
    waits = start(Work(), queue=queue)
    assert until(lambda: job.seconds > 0) and waits.seconds == 0
    work.go.set()
    assert job.wait(SOON)
    seconds = job.seconds
    time.sleep(0.05)
    assert job.seconds == seconds > 0


def test_a_place_is_given_back_when_work_fails(start: Callable[..., Job]) -> None:
    queue = Queue(1)

    def fails(_: Callable) -> None:
        raise ValueError("the loss was no number")

    job = start(fails, queue=queue)
    assert job.wait(SOON) and str(job.problem) == "the loss was no number" and job.status == "failed"
    assert start(Work(ends=True), queue=queue).wait(SOON)


def test_no_analysis_swallows_the_stop(start: Callable[..., Job]) -> None:
    caught = []

    def careless(report: Callable[[int, int], None]) -> None:
        while True:
            try:
                report(0, 1)
                time.sleep(0.005)
            except Exception as error:
                caught.append(error)

    job = start(careless)
    job.leave("me", at_once=True)
    assert job.wait(SOON) and not caught and not issubclass(JobStopped, Exception)


def test_a_forward_pass_counts_and_can_be_the_end(start: Callable[..., Job], tiny_checkpoint: Callable) -> None:
    import transformer

    checkpoint = tiny_checkpoint("bert")

    def endless(_: Callable) -> None:
        while True:
            transformer.trace(checkpoint, "The dog.")

    job = start(endless, passes=10**9)
    assert until(lambda: job.share > 0)
    job.leave("me", at_once=True)
    assert job.wait(SOON) and job.stopped


# ---- fair shares ----------------------------------------------------------------------------------------------------


class Steps:
    """Work in steps of a hundredth of a second until it is left; ``at`` records the time of each step."""

    def __init__(self) -> None:
        self.at: list[float] = []

    def __call__(self, report: Callable[[int, int], None]) -> None:
        while True:
            time.sleep(0.01)
            self.at.append(time.monotonic())
            report(len(self.at), 0)


@pytest.mark.slow
def test_a_fifth_visitor_waits_for_one_share_beside_four_who_train(start: Callable[..., Job]) -> None:
    """Without fair shares it took more than a minute, until one of the four was done."""
    queue, trainings = Queue(2, share=0.2), [Steps() for _ in range(4)]
    for training in trainings:
        start(training, queue=queue)
    assert until(lambda: all(training.at for training in trainings)), "all four of them are served"
    come, fifth = time.monotonic(), Steps()
    start(fifth, queue=queue)
    assert until(lambda: bool(fifth.at))
    assert fifth.at[0] - come < 10.0, "a share is a fifth of a second; a busy machine takes its time"
    counts = [len(training.at) for training in trainings]
    assert until(lambda: all(len(one.at) > count for one, count in zip(trainings, counts, strict=True)))


def test_who_lets_others_go_on_may_be_left_meanwhile(start: Callable[..., Job]) -> None:
    queue, first, blocking = Queue(1, share=0.05), Steps(), threading.Event()
    job = start(first, queue=queue)
    assert until(lambda: bool(first.at))
    start(lambda report: blocking.wait(SOON), queue=queue)
    assert until(lambda: queue.position(job) == 1), "it stands in line again"
    job.leave("me", at_once=True)
    assert job.wait(SOON) and job.status == "stopped" and queue.position(job) == 0
    blocking.set()
    assert start(Work(ends=True), queue=queue).wait(SOON)


# ---- as a page asks -------------------------------------------------------------------------------------------------


@pytest.fixture
def jobs(monkeypatch: pytest.MonkeyPatch) -> Iterator[LongJobs]:
    """The jobs of this test, which a page finds in ``ui.compute.jobs.of_a_test``."""
    made = LongJobs(Store({"results": 1_000_000}))
    monkeypatch.setattr(long_jobs, "of_a_test", made, raising=False)
    monkeypatch.setattr(long_jobs, "work", None, raising=False)
    yield made
    assert until(lambda: all(job.over for job in made._running.values()))


def open_page(work: Callable, key: str = "a key") -> AppTest:
    """A session on a page with one long computation."""
    long_jobs.work = work

    def script(key: str) -> None:
        import streamlit as st

        from ui.compute import jobs as long_jobs

        try:
            st.markdown(f"result: {long_jobs.of_a_test.result(key, 'test', long_jobs.work)}")
        except ValueError as error:
            st.markdown(f"problem: {error}")

    return AppTest.from_function(script, args=(key,), default_timeout=SOON * 3)


def in_background(app: AppTest) -> threading.Thread:
    thread = threading.Thread(target=app.run)
    thread.start()
    return thread


def test_two_sessions_ask_and_it_is_computed_once(jobs: LongJobs) -> None:
    work = Work("42")
    pages = [open_page(work), open_page(work)]
    threads = [in_background(page) for page in pages]
    assert until(lambda: bool(jobs._running) and len(next(iter(jobs._running.values()))._seen) == 2)
    work.go.set()
    for thread in threads:
        thread.join(SOON)
    assert [page.markdown[0].value for page in pages] == ["result: 42"] * 2
    assert work.begun == 1 and jobs._store.known("a key", "test") == "42"
    third = open_page(work).run()
    assert third.markdown[0].value == "result: 42" and work.begun == 1 and not third.button


def test_a_third_session_waits_its_turn(jobs: LongJobs, monkeypatch: pytest.MonkeyPatch, start) -> None:
    others = [Work() for _ in range(settings().jobs)]
    for other in others:
        start(other, queue=QUEUE)
    assert until(lambda: all(other.begun for other in others))
    monkeypatch.setattr(QUEUE, "_share", SOON)
    work = Work("mine", ends=True)
    page = open_page(work)
    thread = in_background(page)
    assert until(lambda: bool(jobs._running))
    job = next(iter(jobs._running.values()))
    time.sleep(0.3)
    assert job.status == "waiting" and not work.begun
    others[0].go.set()
    thread.join(SOON)
    assert page.markdown[0].value == "result: mine" and not page.exception


def test_a_request_just_after_the_last_visitor_left_does_not_join_the_ending_job(jobs: LongJobs, start) -> None:
    ends = threading.Event()
    left = jobs._running[("a key", "test")] = start(lambda report: ends.wait(SOON))  # not yet at its next step
    left.leave("me", at_once=True)
    joined = jobs._join(("a key", "test"), Work("there", ends=True), passes=0, who="another one")
    ends.set()
    assert joined is not left and joined.wait(SOON) and joined.result == "there"


def test_what_was_cancelled_says_so_and_can_be_asked_for_again(jobs: LongJobs) -> None:
    work = Work("there", ends=True)
    page, other = open_page(work), open_page(work, "another key")
    for session in (page, other):
        session.session_state["long jobs: stopped"] = hash(("a key", "test"))
        session.run()
    assert other.markdown[0].value == "result: there" and work.begun == 1
    assert page.markdown[0].value == "result: None" and "stopped" in page.caption[0].value
    page.button(key="long on").click().run()
    assert page.markdown[0].value == "result: there" and work.begun == 2


def test_a_session_has_one_at_a_time(jobs: LongJobs, start) -> None:
    page, before = open_page(Work("second", ends=True)), start(Work())
    me = page.session_state["long jobs: who"] = object()
    before.look(me)
    before.leave("me", at_once=True)
    page.session_state["long jobs: mine"] = ref(before)
    assert page.run().markdown[0].value == "result: second"
    assert before.wait(SOON) and before.stopped


def test_what_goes_wrong_is_raised_where_it_was_asked_for(jobs: LongJobs) -> None:
    def fails(_: Callable) -> None:
        raise ValueError("the sentence is empty")

    page = open_page(fails).run()
    assert page.markdown[0].value == "problem: the sentence is empty"
    long_jobs.work = lambda _: "better"
    assert page.run().markdown[0].value == "result: better"


@pytest.mark.slow
def test_a_page_may_wait_for_several_in_one_run(jobs: LongJobs, monkeypatch: pytest.MonkeyPatch) -> None:
    """As when three baselines are compared: each has its own bar and its own button."""
    monkeypatch.setattr(long_jobs, "_SHORT", 0.02)

    def script() -> None:
        import time

        import streamlit as st

        from ui.compute import jobs as long_jobs

        def work(number: int) -> int:
            time.sleep(0.2)  # longer than the delay before a bar is shown
            return number

        found = [long_jobs.of_a_test.result(n, "several", lambda _, n=n: work(n)) for n in (1, 2)]
        st.markdown(str(found))

    app = AppTest.from_function(script, default_timeout=SOON).run()
    assert not app.exception, app.exception[0].message
    assert app.markdown[0].value == "[1, 2]"
