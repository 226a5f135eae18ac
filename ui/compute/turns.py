"""One script after the other, where a whole class clicks at once; who asks for little does not wait for who asks a lot.

Python runs one thread at a time. Thirty scripts that begin together would all be finished at the end, and cost more for
changing places; one after the other, half of the class is served in half of that time. And the shortest go first: that
is the order in which the class waits least (``Visitor``).
"""

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

LONGEST = 0.3  # seconds; several times what a page takes whose numbers are known
NEW = 1.0  # seconds of the processor, expected of a visitor's first script
WEIGHT = 30.0  # a second of the processor counts as much as so many seconds of waiting


@dataclass(eq=False)
class Visitor:
    """What the next script of one session is expected to take, in seconds of the processor.

    By exponential averaging of what its scripts took, as of the bursts of a process in shortest-job-first scheduling
    (Silberschatz, Galvin and Gagne, Operating System Concepts, section on CPU scheduling).
    """

    expected: float = NEW

    def has_used(self, seconds: float) -> None:
        self.expected = (self.expected + seconds) / 2


@dataclass(eq=False)
class _Script:
    expected: float  # seconds of the processor
    due: float  # a moment of time.monotonic(): the least one is next


class Turns:
    """``with turns.next(visitor): …`` waits until it is one's turn.

    A turn ends with the script, or when it has lasted as long as the next script is expected to take (at least
    ``longest`` seconds) for each that runs: they share the processor.

    Nobody is stopped: who takes longer goes on beside those who follow. Nobody waits for ever: what is expected of a
    script counts against how long it has waited.
    """

    def __init__(self, longest: float = LONGEST) -> None:
        self._longest = longest
        self._line: list[_Script] = []
        self._running: list[_Script] = []
        self._turn: _Script | None = None  # who began last
        self._since = 0.0  # and when
        self._changed = threading.Condition()
        self._here = threading.local()  # its ``script`` is the one of this thread

    @contextmanager
    def next(self, visitor: Visitor) -> Iterator[None]:
        script = self._here.script = _Script(visitor.expected, time.monotonic() + WEIGHT * visitor.expected)
        self._enter(script)
        begun = time.thread_time()
        try:
            yield
        finally:  # also where Streamlit ends the script
            visitor.has_used(time.thread_time() - begun)
            self._leave(script)
            self._here.script = None

    @contextmanager
    def aside(self) -> Iterator[None]:
        """While a script only waits for something, it is nobody's turn; to go on, it stands in line again, as early."""
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
        """Seconds, after which it is to ask again; 0 where it is its turn."""
        if min(self._line, key=lambda other: other.due) is not script:
            return threading.TIMEOUT_MAX  # who leaves the line says so
        if self._turn not in self._running:
            return 0
        return self._since + max(self._longest, script.expected) * len(self._running) - time.monotonic()


turns = Turns()
# A short script beside a long computation loses its place with every number that it asks of PyTorch, and gets it back
# only after such an interval: Python's own is five times as long.
sys.setswitchinterval(0.001)
