"""Long computations of all sessions, including live training runs: few at a time, in fair shares.

The others wait in line; each shows its progress and can be cancelled, and none is done twice.

``jobs.result`` waits in the script of the page: Streamlit leaves the screen as it is until the script continues, and
any action of the reader ends the wait. The work itself is done in a separate thread, which several sessions may watch;
it ends at its next step if nobody has watched for a moment: it was cancelled, the page was left, or the browser was
closed. A page that shows a computation in progress (a training) starts its own ``Job`` and polls it.
"""

import atexit
import threading
import time
from collections.abc import Callable, Hashable
from functools import partial
from typing import Generic, Literal, TypeVar
from weakref import WeakValueDictionary, ref

import streamlit as st

from transformer.probes import interruptible
from ui.compute.queue import LOOK_AGAIN, SCRIPTS, Queue
from ui.compute.store import Key, Name, Store, store
from ui.server.settings import settings
from ui.server.streamlit_private import SCRIPT_THREAD
from ui.words.texts import common

Result = TypeVar("Result")
Report = Callable[[int, int], None]
Status = Literal["waiting", "running", "finished", "stopped", "left", "failed"]
PATIENCE = 4.0  # seconds for which a job continues without watchers
SHARE = 1.0  # seconds after which a job lets another one in line continue
_GRACE = 1.0  # seconds for which a job continues after a watcher leaves, since most return at once
_SHORT = 0.4  # seconds before the page shows that something is being computed
_LAST = 10.0  # seconds for which a server waits for its threads when it is shut down
_JOB = "glassformer long job"  # the name of a thread
_ending = threading.Event()
_WHO, _MINE, _STOPPED = (f"long jobs: {name}" for name in ("who", "mine", "stopped"))
# Of all sessions; the cores are also needed for short computations.
QUEUE = Queue(lambda: settings().jobs, share=SHARE)


class JobStopped(BaseException):
    """Raised in work that no session waits for any more; not an ``Exception``, so no analysis swallows it."""


class Job(Generic[Result]):
    """One computation in the background: ``work(report)`` runs in a thread once there is a slot for it.

    ``report(done, total)`` records progress, yields to others, and ends the work (by ``JobStopped``) if no session
    waits for it any more; so does every forward pass of a model.

    Args:
        work: The computation.
        passes: Approximate number of forward passes, if the work does not report.
        queue: Where it waits for a slot.
        patience: See ``PATIENCE``.
    """

    def __init__(
        self,
        work: Callable[[Report], Result],
        *,
        passes: int = 0,
        queue: Queue | None = None,
        patience: float = PATIENCE,
    ) -> None:
        self._work, self._passes, self._n_passed = work, passes, 0
        self._queue = QUEUE if queue is None else queue
        self._patience = patience
        self._seen: dict[Hashable, float] = {}  # until when each watcher counts as watching
        self._seen_lock = threading.Lock()
        self._given_up = False  # whether the last watcher has cancelled
        self._done = threading.Event()
        self.progress: tuple[int, int] | None = None
        self._started = self._ended = 0.0  # time.monotonic(), 0 before
        self.result: Result | None = None
        self.problem: Exception | None = None
        self.stopped = False
        self._thread = threading.Thread(target=self._run, name=_JOB, daemon=True)

    def start(self, who: Hashable) -> None:
        """Add the watcher ``who``, and start the work if needed."""
        self.look(who)
        self._thread.start()

    def look(self, who: Hashable) -> bool:
        """Keep the job alive, and return whether it is over; only a job that is still wanted can be joined."""
        with self._seen_lock:
            self._seen[who] = time.monotonic() + self._patience
        return self.over

    def leave(self, who: Hashable, *, at_once: bool = False) -> None:
        """Remove a watcher, ``at_once`` or after a moment; the work ends when nobody is left."""
        with self._seen_lock:
            if at_once:
                self._seen.pop(who, None)
                self._given_up = self._given_up or not self._seen
            elif who in self._seen:
                self._seen[who] = min(self._seen[who], time.monotonic() + _GRACE)

    @property
    def wanted(self) -> bool:
        """Whether a session still waits for the result."""
        now = time.monotonic()
        with self._seen_lock:
            return not self._given_up and not _ending.is_set() and any(until > now for until in self._seen.values())

    @property
    def over(self) -> bool:
        """Whether the work has ended."""
        return self._done.is_set()

    @property
    def status(self) -> Status:
        """Status; a job without a result was "stopped" by a reader or "left" by all its watchers."""
        if not self.over:
            return "running" if self._started else "waiting"
        if self.problem is not None:
            return "failed"
        return ("stopped" if self._given_up else "left") if self.stopped else "finished"

    @property
    def before(self) -> int:
        """Number of jobs in line before it."""
        return max(0, self._queue.position(self) - 1)

    @property
    def seconds(self) -> float:
        """Seconds that it has been running, or ran."""
        return (self._ended or time.monotonic()) - self._started if self._started else 0.0

    @property
    def share(self) -> float:
        """Approximate completed share, from 0 to 1."""
        done, total = self.progress or (self._n_passed, self._passes)
        return min(1.0, done / total) if total else 0.0

    def wait(self, timeout: float) -> bool:
        """Wait until it is over, or for ``timeout`` seconds; return whether it is over."""
        return self._done.wait(timeout)

    def _report(self, done: int, total: int) -> None:
        self.progress = (done, total)
        self._go_on()
        # Not before every pass: an unfinished operation may hold locks that others need.
        if not self._queue.share(self, waits=lambda: self.wanted):
            raise JobStopped

    def _before_pass(self) -> None:
        self._go_on()
        self._n_passed += 1

    def _go_on(self) -> None:
        if not self.wanted:
            raise JobStopped

    def _run(self) -> None:
        try:
            if not self._queue.enter(self, waits=lambda: self.wanted):
                raise JobStopped
            self._started = time.monotonic()
            with interruptible(self._before_pass):
                self.result = self._work(self._report)
        except JobStopped:
            self.stopped = True
        except Exception as problem:  # the waiting page raises it and shows a sentence
            self.problem = problem
        finally:
            self._ended = time.monotonic()
            del self._work  # frees the work and everything that it uses
            self._queue.leave(self)
            self._done.set()


@atexit.register
def _end_threads() -> None:
    """Let every computing thread return from torch.

    Python ends daemon threads wherever they are; inside torch, that aborts the process ("terminate called without
    an active exception").
    """
    _ending.set()
    end = time.monotonic() + _LAST
    for thread in threading.enumerate():
        if thread.name in (_JOB, SCRIPT_THREAD):
            thread.join(max(0.0, end - time.monotonic()))


# ---- as a page asks -------------------------------------------------------------------------------------------------


class LongJobs:
    """Long computations of all sessions; their results are kept in ``store``."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.Lock()
        # Weak references: a job lives as long as its thread or a session that waits for it.
        self._running: WeakValueDictionary[Key, Job] = WeakValueDictionary()

    def result(
        self,
        of: Hashable,
        name: Name,
        work: Callable[[Report], Result],
        *,
        doing: str = "",
        passes: int = 0,
    ) -> Result | None:
        """Return the result ``name`` of a run (or another key), computed once by ``work(report)``.

        A long computation shows a progress bar and a cancel button, which leaves a button to continue. Exceptions of
        ``work`` are raised here. ``work`` runs in a separate thread, so it must not use Streamlit or any state of a
        session.

        Args:
            of: The key that the result belongs to, usually a run.
            name: Name of the result.
            work: The computation.
            doing: Text on the bar, by default that sentences are read.
            passes: Approximate number of forward passes.

        Returns:
            The result; ``None`` if this session has cancelled it.
        """
        if (found := self._store.known(of, name)) is not None:
            return found
        key = (of, name)
        if st.session_state.get(_STOPPED) == hash(key):
            st.caption(common("long.stopped"))
            go_on = partial(st.session_state.pop, _STOPPED)
            st.button(common("long.go_on"), icon=":material/play_arrow:", key="long on", on_click=go_on)
            return None
        who, room, job = this_session(), st.empty(), None
        while job is None or job.stopped:  # it was about to end when this session joined it
            job = self._join(key, work, passes=passes, who=who)
            make_mine(job)
            try:
                SCRIPTS.leave(who)  # the server has time for others
                if not job.wait(_SHORT):
                    cancel = partial(_cancel, hash(key), ref(job), who)
                    here = f"long {hash(key)}"  # a page may wait for several, one after the other
                    with room.container(key=f"{here} bar", horizontal=True, vertical_alignment="center"):
                        bar = st.progress(0.0)
                        st.button(common("long.cancel"), icon=":material/close:", key=f"{here} cancel", on_click=cancel)
                    while not job.look(who):
                        bar.progress(job.share, _words(job, doing))
                        job.wait(LOOK_AGAIN)
            finally:  # a rerun or a closed browser raises here, and not as an Exception
                job.leave(who)
        room.empty()
        if job.problem is not None:
            raise job.problem
        return job.result

    def _join(self, key: Key, work: Callable[[Report], Result], *, passes: int, who: Hashable) -> Job[Result]:
        with self._lock:
            job = self._running.get(key)
            if job is not None and not job.over and job.wanted:
                job.look(who)
                return job

            def and_keep(report: Report) -> Result:
                found = work(report)
                self._store.keep(*key, found)
                return found

            job = self._running[key] = Job(and_keep, passes=passes)
            job.start(who)
            return job


jobs = LongJobs(store)


def make_mine(job: Job) -> None:
    """Set this session's long job, of which there is only one, and leave the previous one."""
    before = st.session_state.get(_MINE, lambda: None)()
    if before is not None and before is not job:
        before.leave(this_session(), at_once=True)
    st.session_state[_MINE] = ref(job)


def this_session() -> Hashable:
    """Return an object that identifies the browser session."""
    return st.session_state.setdefault(_WHO, object())


def _words(job: Job, doing: str) -> str:
    if job.status == "waiting":
        return common("long.waiting", before=job.before, at_once=settings().jobs)
    done, total = job.progress or (0, 0)
    if total > 1:
        how_far = common("long.of", done=done, total=total)
        return f"{doing} {how_far}" if doing else common("sentences.reading", done=done, total=total)
    return f"{doing} {common('long.seconds', seconds=int(job.seconds))}"


def _cancel(what: int, of: "ref[Job]", who: Hashable) -> None:
    if (job := of()) is not None:
        job.leave(who, at_once=True)
    st.session_state[_STOPPED] = what
