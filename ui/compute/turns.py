"""Order of scripts when a whole class clicks at once, so that short ones do not wait for long ones.

Python runs one thread at a time. Thirty scripts that begin together would all finish at the end, with extra cost for
switching; one after the other, half of the class is served in half of that time. The shortest go first, which minimises
the total waiting time (``Visitor``).
"""

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

LONGEST = 0.3  # seconds; several times the duration of a page whose numbers are known
NEW = 1.0  # seconds of processor time, expected for a visitor's first script
WEIGHT = 30.0  # seconds of waiting that count as much as one second of processor time


@dataclass(eq=False)
class Visitor:
    """Expected processor time of a session's next script, in seconds.

    It is an exponential average over its scripts, as for the bursts of a process in shortest-job-first scheduling
    (Silberschatz, Galvin and Gagne, Operating System Concepts, section on CPU scheduling).
    """

    expected: float = NEW

    def has_used(self, seconds: float) -> None:
        """Update the expectation with the time that a script took."""
        self.expected = (self.expected + seconds) / 2


@dataclass(eq=False)
class _Script:
    expected: float  # seconds of processor time
    due: float  # time.monotonic(); the smallest is next


class Turns:
    """Context managers that wait for a turn: ``with turns.next(visitor): …``.

    A turn ends with the script, or after the time that the next script is expected to take (at least ``longest``
    seconds) for each running script, since they share the processor. No script is stopped: a slower one continues
    beside the following ones. No script waits forever: its expected time is weighed against its waiting time.
    """

    def __init__(self, longest: float = LONGEST) -> None:
        self._longest = longest
        self._line: list[_Script] = []
        self._running: list[_Script] = []
        self._turn: _Script | None = None  # the script whose turn began last
        self._since = 0.0  # and when it began
        self._changed = threading.Condition()
        self._here = threading.local()  # ``script`` is the script of this thread

    @contextmanager
    def next(self, visitor: Visitor) -> Iterator[None]:
        """Wait for this visitor's turn."""
        script = self._here.script = _Script(visitor.expected, time.monotonic() + WEIGHT * visitor.expected)
        self._enter(script)
        begun = time.thread_time()
        try:
            yield
        finally:  # even if Streamlit ends the script
            visitor.has_used(time.thread_time() - begun)
            self._leave(script)
            self._here.script = None

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Release the turn while a script only waits; it rejoins the line at its old position."""
        script = getattr(self._here, "script", None)
        if script is None:  # a part of a page, which takes no turns
            yield
            return
        self._leave(script)
        yield
        self._enter(script)

    def _enter(self, script: _Script) -> None:
        with self._changed:
            self._line.append(script)
            try:
                while (patience := self._must_wait(script)) > 0:
                    self._changed.wait(patience)
            finally:
                self._line.remove(script)
                self._changed.notify_all()
            self._running.append(script)
            self._turn, self._since = script, time.monotonic()

    def _leave(self, script: _Script) -> None:
        with self._changed:
            if script in self._running:
                self._running.remove(script)
                self._changed.notify_all()

    def _must_wait(self, script: _Script) -> float:
        """Return the seconds until the script should ask again; 0 if it is its turn."""
        if min(self._line, key=lambda other: other.due) is not script:
            return threading.TIMEOUT_MAX  # whichever script leaves the line notifies it
        if self._turn not in self._running:
            return 0
        return self._since + max(self._longest, script.expected) * len(self._running) - time.monotonic()


turns = Turns()
# A short script beside a long computation loses the interpreter at every PyTorch call, and gets it back only after this
# interval; Python's default is five times as long.
sys.setswitchinterval(0.001)
