"""One long computation in a thread of its own, and the line in which those of all sessions wait; no Streamlit here."""

import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from transformer.probes import interruptible
from ui.compute.limits import limits

Result = TypeVar("Result")
TRAINING = "training"  # a kind of job
PATIENCE = 4.0  # seconds for which a job goes on although nobody looks at it
LOOK_AGAIN = 0.25  # seconds
_GRACE = 1.0  # seconds for which it goes on after somebody left: most of them come back in the same breath


class Places:
    """Room for so many at once; the others wait in the order in which they came.

    Without a ``count`` the limits of the server hold, read when somebody asks for a place: of a ``TRAINING`` fewer may
    be inside, and who waits for one lets others pass.
    """

    def __init__(self, count: int | None = None) -> None:
        self._count = count
        self._inside: Counter[str] = Counter()  # by kind
        self._queue: deque[tuple[object, str]] = deque()
        self._changed = threading.Condition()

    def enter(self, who: object, *, waits: Callable[[], bool], kind: str = "") -> bool:
        """Wait for a place. ``False`` where ``waits()`` has become false before there was one."""
        with self._changed:
            self._queue.append((who, kind))
            try:
                while self._next() is not who:
                    if not waits():
                        return False
                    self._changed.wait(LOOK_AGAIN)
                self._inside[kind] += 1
                return True
            finally:
                self._queue.remove((who, kind))
                self._changed.notify_all()

    def leave(self, kind: str = "") -> None:
        """Give the place back, of the ``kind`` that was entered."""
        with self._changed:
            self._inside[kind] -= 1
            self._changed.notify_all()

    def number(self, who: object) -> int:
        """1 for the one who is next; 0 for one who does not wait."""
        with self._changed:
            return next((place for place, (other, _) in enumerate(self._queue, start=1) if other is who), 0)

    def _next(self) -> object | None:
        """Who may come in now."""
        if self._inside.total() >= self._room():
            return None
        return next((who for who, kind in self._queue if self._inside[kind] < self._room(kind)), None)

    def _room(self, kind: str = "") -> int:
        if self._count is not None:
            return self._count
        return limits().trainings if kind == TRAINING else limits().jobs


PLACES = Places()  # of all sessions; the cores are needed for everybody's short work as well


class JobStopped(BaseException):
    """Raised inside of work for which no session waits any more. No ``Exception``: no analysis may swallow it."""


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
