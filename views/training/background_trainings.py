"""Trainings that go on in the background while a page looks at them: few at a time, never longer than somebody looks.

A run has a thread of its own and shares nothing with other runs but the places to run in, which are those of all long
computations (``ui.compute.long_jobs``). It ends when its training ends, at a click on Stop, when the training fails, or
when no session has looked for ``patience`` seconds (the reader left the page or closed the browser). What it has found
so far stays readable.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Generic, Literal, TypeVar

from ui.compute.jobs import PLACES, TRAINING, Places

State = TypeVar("State")
Status = Literal["waiting", "running", "finished", "stopped", "left", "failed"]
PATIENCE = 20.0  # seconds
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class Progress(Generic[State]):
    """What a run has to show at one moment. ``number``: place in the queue while it waits, else 0; ``problem``: the
    sentence of what made it fail; ``seconds``: how long it has been training."""

    status: Status
    states: tuple[State, ...]
    number: int
    problem: str
    seconds: float

    @property
    def over(self) -> bool:
        return self.status not in ("waiting", "running")


class Run(Generic[State]):
    """One training in the background: ``begin`` is called in the thread and gives the states, one after the other.

    ``places`` (default: those that all sessions of the app share) and ``patience`` (default ``PATIENCE``, in seconds).
    """

    def __init__(
        self, begin: Callable[[], Iterator[State]], *, places: Places | None = None, patience: float | None = None
    ) -> None:
        self._begin = begin
        self._places = PLACES if places is None else places
        self._patience = PATIENCE if patience is None else patience
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._states: list[State] = []
        self._status: Status = "waiting"
        self._problem = ""
        self._started = self._ended = 0.0
        self._looked = time.monotonic()
        self._thread = threading.Thread(target=self._work, name="glassformer training", daemon=True)
        self._thread.start()

    def look(self) -> Progress[State]:
        """How far it is; to look is also what keeps it going."""
        self._looked = time.monotonic()
        number = self._places.number(self)
        with self._lock:
            seconds = (self._ended or time.monotonic()) - self._started if self._started else 0.0
            return Progress(self._status, tuple(self._states), number, self._problem, seconds)

    def stop(self) -> None:
        """End it soon, after the steps up to its next state."""
        self._stop.set()

    def leave(self, _who: object = None, *, at_once: bool = False) -> None:
        """Its session does something else that is long: see ``ui.compute.long_jobs.take_turn``."""
        self.stop()

    def join(self, timeout: float | None = None) -> bool:
        """Wait until its thread has ended; ``False`` where it has not within ``timeout`` seconds."""
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def _wanted(self) -> bool:
        return not self._stop.is_set() and time.monotonic() - self._looked < self._patience

    def _work(self) -> None:
        status: Status = "failed"
        try:
            status = self._wait_and_train()
        except Exception as error:  # whatever it is, who looks gets a sentence
            _LOG.warning("a training in the background failed", exc_info=True)
            self._problem = str(error) or type(error).__name__
        finally:
            with self._lock:
                self._status, self._ended = status, time.monotonic()

    def _wait_and_train(self) -> Status:
        if not self._places.enter(self, waits=self._wanted, kind=TRAINING):
            return self._why_ended()
        try:
            with self._lock:
                self._status, self._started = "running", time.monotonic()
            for state in self._begin():
                with self._lock:
                    self._states.append(state)
                if not self._wanted():
                    return self._why_ended()
            return "finished"
        finally:
            self._places.leave(TRAINING)

    def _why_ended(self) -> Status:
        return "stopped" if self._stop.is_set() else "left"
