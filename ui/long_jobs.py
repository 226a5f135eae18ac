"""Long computations of all sessions: few at a time, the others in line; each can be cancelled, none is done twice.

``LongJobs.result`` waits in the script of the page: Streamlit leaves what was on the screen where it is until the
script goes on, and whatever the person does meanwhile ends the waiting. The work itself is done in a thread of its own,
which several sessions may look at; it ends at its next step when nobody has looked for a moment: it was cancelled, the
page was left, the browser was closed.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable
from functools import partial
from typing import Generic, Protocol, TypeVar

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from transformer.interruption import interruptible
from ui.text import common

Result = TypeVar("Result")
AT_ONCE = 2  # over all sessions; the cores are needed for everybody's short work as well
PATIENCE = 4.0  # seconds for which a job goes on although nobody looks at it
_GRACE = 1.0  # seconds for which it goes on after somebody left: most of them come back in the same breath
_SHORT = 0.4  # seconds before it is worth saying that something is being computed
_LOOK_AGAIN = 0.25  # seconds
_WHO, _MINE, _STOPPED = (f"long jobs: {name}" for name in ("who", "mine", "stopped"))


class Places:
    """Room for so many at once; the others wait in the order in which they came."""

    def __init__(self, count: int) -> None:
        self._free = count
        self._queue: deque[object] = deque()
        self._changed = threading.Condition()

    def enter(self, who: object, *, waits: Callable[[], bool]) -> bool:
        """Wait for a place. ``False`` where ``waits()`` has become false before there was one."""
        with self._changed:
            self._queue.append(who)
            try:
                while not (self._free and self._queue[0] is who):
                    if not waits():
                        return False
                    self._changed.wait(_LOOK_AGAIN)
                self._free -= 1
                return True
            finally:
                self._queue.remove(who)
                self._changed.notify_all()

    def leave(self) -> None:
        with self._changed:
            self._free += 1
            self._changed.notify_all()

    def number(self, who: object) -> int:
        """1 for the one who is next; 0 for one who does not wait."""
        with self._changed:
            return self._queue.index(who) + 1 if who in self._queue else 0


PLACES = Places(AT_ONCE)


class JobStopped(BaseException):
    """Raised inside of work that nobody waits for any more. No ``Exception``: no analysis may swallow it."""


class Job(Generic[Result]):
    """One computation in the background: ``work(report)`` is called in a thread when there is a place for it.

    ``report(done, total)`` says how far it is, and ends the work (by ``JobStopped``) where nobody wants it any more; so
    does every forward pass of a model. ``passes``: how many of those the work takes, about, where it does not report.
    """

    def __init__(
        self,
        work: Callable[[Callable[[int, int], None]], Result],
        *,
        passes: int = 0,
        places: Places | None = None,
        patience: float | None = None,
    ) -> None:
        self._work, self._passes, self._n_passed = work, passes, 0
        self._places = PLACES if places is None else places
        self._patience = PATIENCE if patience is None else patience
        self._seen: dict[Hashable, float] = {}  # until when each of those who look counts as looking
        self._seen_lock = threading.Lock()
        self._done = threading.Event()
        self.progress: tuple[int, int] | None = None
        self.started = 0.0  # a moment of time.monotonic(), 0 while it waits
        self.result: Result | None = None
        self.problem: Exception | None = None
        self.stopped = False
        self._thread = threading.Thread(target=self._run, name="glassformer long job", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def look(self, who: Hashable) -> bool:
        """Keep it going; whether it is over. Only a job that is still wanted can be joined (``wanted``)."""
        with self._seen_lock:
            self._seen[who] = time.monotonic() + self._patience
        return self._done.is_set()

    def leave(self, who: Hashable, *, at_once: bool = False) -> None:
        """``who`` looks no longer; without anybody else the work ends, at once or after a moment."""
        with self._seen_lock:
            if at_once:
                self._seen.pop(who, None)
            elif who in self._seen:
                self._seen[who] = min(self._seen[who], time.monotonic() + _GRACE)

    @property
    def wanted(self) -> bool:
        now = time.monotonic()
        with self._seen_lock:
            return any(until > now for until in self._seen.values())

    @property
    def over(self) -> bool:
        return self._done.is_set()

    @property
    def before(self) -> int:
        """How many are in line before it."""
        return max(0, self._places.number(self) - 1)

    @property
    def waiting(self) -> bool:
        return not self.started and not self.over

    @property
    def share(self) -> float:
        """How much of it is done, about: 0…1."""
        done, total = self.progress or (self._n_passed, self._passes)
        return min(1.0, done / total) if total else 0.0

    def wait(self, timeout: float) -> bool:
        """Until it is over, or for so many seconds; whether it is over."""
        return self._done.wait(timeout)

    def _report(self, done: int, total: int) -> None:
        self.progress = (done, total)
        self._go_on()

    def _before_pass(self) -> None:
        self._go_on()
        self._n_passed += 1

    def _go_on(self) -> None:
        if not self.wanted:
            raise JobStopped

    def _run(self) -> None:
        try:
            if not self._places.enter(self, waits=lambda: self.wanted):
                self.stopped = True
                return
            try:
                self.started = time.monotonic()
                with interruptible(self._before_pass):
                    self.result = self._work(self._report)
            finally:
                self._places.leave()
        except JobStopped:
            self.stopped = True
        except Exception as problem:  # whoever waits raises it on the page, which makes a sentence of it
            self.problem = problem
        finally:
            self._done.set()


class LongJobs(Generic[Result]):
    """One kind of long computation, for all sessions: what is being computed, and the last ``keep`` results."""

    def __init__(self, name: str, *, keep: int = 32) -> None:
        self.name = name
        self._keep = keep
        self._lock = threading.Lock()
        self._results: OrderedDict[Hashable, Result] = OrderedDict()
        self._running: dict[Hashable, Job[Result]] = {}

    def known(self, key: Hashable) -> Result | None:
        """The result where it has been computed."""
        with self._lock:
            if key in self._results:
                self._results.move_to_end(key)
            return self._results.get(key)

    def clear(self) -> None:
        with self._lock:
            self._results.clear()

    def result(
        self,
        key: Hashable,
        work: Callable[[Callable[[int, int], None]], Result],
        *,
        doing: str = "",
        passes: int = 0,
        saying: Callable[[int, int], str] | None = None,
        stopped: str = "",
        on_cancel: Callable[[], None] | None = None,
    ) -> Result | None:
        """What ``work(report)`` gives, computed once for all who ask for ``key``; ``None`` where this session has
        stopped it, which is then said (``stopped``), with a button to go on; or ``on_cancel()`` is called instead.

        Draws a bar and a button to cancel while it takes long. What stands on the bar: ``doing``, or
        ``saying(done, total)`` once the work reports. Raises what ``work`` raises. ``work`` runs in a thread of its
        own: it must touch neither Streamlit nor what belongs to a session.
        """
        if (found := self.known(key)) is not None:
            return found
        if st.session_state.get(_STOPPED) == (self.name, key):
            st.caption(stopped or common("long.stopped"))
            st.button(common("long.go_on"), icon=":material/play_arrow:", key=f"{self.name} on", on_click=_go_on)
            return None
        who, room = _session(), st.empty()
        while True:
            job = self._join(key, work, passes=passes, who=who)
            take_turn(job)
            try:
                if not job.wait(_SHORT):
                    cancel = partial(_cancel, (self.name, key), job, who, on_cancel)
                    self._watch(job, who, room, cancel, lambda job=job: _words(job, doing, saying))
            finally:  # a rerun, a closed browser: both raise out of the drawing, and not as an Exception
                job.leave(who)
            if not job.stopped:  # else it was about to end when this session joined it
                break
        room.empty()
        if job.problem is not None:
            raise job.problem
        return job.result

    def _watch(
        self, job: Job, who: Hashable, room: DeltaGenerator, cancel: Callable[[], None], words: Callable[[], str]
    ) -> None:
        with room.container(key=f"{self.name} bar", horizontal=True, vertical_alignment="center"):
            bar = st.progress(0.0)
            st.button(
                common("long.cancel"),
                icon=":material/close:",
                key=f"{self.name} cancel",
                on_click=cancel,
                width="content",
            )
        while not job.look(who):
            bar.progress(job.share, words())
            job.wait(_LOOK_AGAIN)

    def _join(self, key: Hashable, work: Callable, *, passes: int, who: Hashable) -> Job[Result]:
        with self._lock:
            job = self._running.get(key)
            if job is not None and not job.over and job.wanted:
                job.look(who)
                return job

            def and_keep(report: Callable[[int, int], None]) -> Result:
                found = work(report)
                with self._lock:
                    self._results[key] = found
                    while len(self._results) > self._keep:
                        self._results.popitem(last=False)
                    self._running.pop(key, None)
                return found

            self._running = {other: run for other, run in self._running.items() if not run.over}
            job = self._running[key] = Job(and_keep, passes=passes)
            job.look(who)
            job.start()
            return job


class Leavable(Protocol):
    """What a session may have given up for something else: a ``Job``, or a training."""

    def leave(self, who: Hashable, *, at_once: bool = False) -> None: ...


def take_turn(job: Leavable) -> None:
    """One long job for each session: ``job`` is the one of this session now, and the one before it is left."""
    before: Leavable | None = st.session_state.get(_MINE)
    if before is not None and before is not job:
        before.leave(_session(), at_once=True)
    st.session_state[_MINE] = job


def _session() -> Hashable:
    """Who looks: one object for each browser session."""
    return st.session_state.setdefault(_WHO, object())


def _words(job: Job, doing: str, saying: Callable[[int, int], str] | None) -> str:
    if job.waiting:
        return common("long.waiting", before=job.before, at_once=AT_ONCE)
    if saying is not None and job.progress is not None:
        return saying(*job.progress)
    return f"{doing} {common('long.seconds', seconds=int(time.monotonic() - job.started))}"


def _cancel(what: tuple[str, Hashable], job: Job, who: Hashable, instead: Callable[[], None] | None) -> None:
    job.leave(who, at_once=True)
    if instead is None:
        st.session_state[_STOPPED] = what
    else:
        instead()


def _go_on() -> None:
    st.session_state.pop(_STOPPED, None)
