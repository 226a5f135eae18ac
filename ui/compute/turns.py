"""One script after the other, where a whole class clicks at once.

Python runs one thread at a time. Thirty scripts that begin together would all be finished at the end, and cost more for
changing places; one after the other, half of the class is served in half of that time.
"""

import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

LONGEST = 0.3  # seconds; several times what a page takes whose numbers are known


class Turns:
    """``with turns.next(): …`` waits until those who came before are done, or have taken ``longest`` seconds.

    Nobody is stopped: who takes longer goes on beside those who follow, as it would without turns.
    """

    def __init__(self, longest: float = LONGEST) -> None:
        self._longest = longest
        self._line: deque[threading.Event] = deque()  # the first one has its turn, and its event is set
        self._lock = threading.Lock()
        self._since = 0.0  # when the first one's turn began

    @contextmanager
    def next(self) -> Iterator[None]:
        mine = threading.Event()
        with self._lock:
            self._line.append(mine)
            if self._line[0] is mine:
                self._call_next()
        try:
            while not mine.wait(self._longest):
                self._pass_over()
            yield
        finally:  # also where Streamlit ends the script
            self._leave(mine)

    def _pass_over(self) -> None:
        """If the first one has had its time, it counts no longer."""
        with self._lock:
            if self._line and time.monotonic() - self._since >= self._longest:
                self._line.popleft()
                self._call_next()

    def _leave(self, mine: threading.Event) -> None:
        with self._lock:
            if mine in self._line:
                first = self._line[0] is mine
                self._line.remove(mine)
                if first:
                    self._call_next()

    def _call_next(self) -> None:
        if self._line:
            self._since = time.monotonic()
            self._line[0].set()


turns = Turns()
