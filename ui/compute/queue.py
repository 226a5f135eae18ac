"""The queue for everything that a server does for a limited number at a time; no Streamlit.

Long computations wait in one (``ui/compute/jobs.py``), and so do the scripts of pages when a whole class clicks at
once, and visitors of a server that is full (``ui/shell/admission.py``).
"""

import math
import sys
import threading
import time
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager

LOOK_AGAIN = 0.25  # seconds until a thread in line looks whether it still has to wait
LONGEST = 0.3  # seconds of a script's turn; several times the duration of a page whose numbers are known


class Queue:
    """A limited number of slots; anyone without a slot waits in line, in the order of arrival.

    Anyone who gives up a slot and wants another one joins the end of the line, so that all get equal shares.

    Args:
        room: Number of slots; a function is asked each time.
        share: Seconds for which a slot is kept in ``share`` while others wait.
        lasts: Seconds without a request after which a slot is taken from its holder for somebody in line, the one
            without a request for longest first.
        is_here: Returns whether a visitor in line is still there, since one who leaves gives no notice.
        clock: Seconds.
    """

    def __init__(
        self,
        room: int | Callable[[], int],
        *,
        share: float = 0.0,
        lasts: float = math.inf,
        is_here: Callable[[Hashable], bool] = lambda _: True,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._room = room if callable(room) else lambda: room
        self._share, self._lasts, self._is_here, self._clock = share, lasts, is_here, clock
        self._inside: dict[Hashable, float] = {}  # the time of its last request; the earliest comes first
        self._line: dict[Hashable, None] = {}
        self._changed = threading.Condition()

    def ask(self, who: Hashable) -> int:
        """Return 0 if ``who`` has a slot now, else the position in line, from 1; to be asked again soon."""
        with self._changed:
            now = self._clock()
            for places in (self._inside, self._line):
                for other in [other for other in places if other != who and not self._is_here(other)]:
                    del places[other]
            if who not in self._inside:
                self._line.setdefault(who)
                self._end_old_slots(now)
                if place := self.position(who):
                    return place
            self._line.pop(who, None)
            self._inside.pop(who, None)
            self._inside[who] = now
            self._changed.notify_all()  # the one behind may have a slot, too
            return 0

    def enter(self, who: Hashable, *, waits: Callable[[], bool] = lambda: True) -> bool:
        """Wait for a slot; return ``False`` if ``waits()`` becomes false first."""
        with self._changed:
            try:
                while self.ask(who):
                    if not waits():
                        return False
                    self._changed.wait(min(LOOK_AGAIN, self._lasts))
                return True
            finally:
                if who in self._line:
                    del self._line[who]
                    self._changed.notify_all()

    def share(self, who: Hashable, *, waits: Callable[[], bool] = lambda: True) -> bool:
        """Let another one in if the share of ``who`` has ended, then wait for a slot again, like ``enter``."""
        with self._changed:
            if not self._line or self._clock() < self._inside[who] + self._share:
                return True
            self.leave(who)
            return self.enter(who, waits=waits)

    def leave(self, who: Hashable) -> None:
        """Give back the slot of ``who``, if it has one."""
        with self._changed:
            if self._inside.pop(who, None) is not None:
                self._changed.notify_all()

    @contextmanager
    def slot(self, who: Hashable) -> Iterator[None]:
        """Wait for a slot, and give it back at the end."""
        self.enter(who)
        try:
            yield
        finally:  # even if Streamlit ends the script
            self.leave(who)

    def position(self, who: Hashable) -> int:
        """Return the position in line, 1 for the next one who has to wait; 0 if ``who`` does not wait."""
        with self._changed:
            free = max(0, self._room() - len(self._inside))
            return max(0, [*self._line].index(who) + 1 - free) if who in self._line else 0

    def _end_old_slots(self, now: float) -> None:
        """Take as many old slots as others wait for."""
        while self._inside and len(self._inside) + len(self._line) > self._room():
            who, since = next(iter(self._inside.items()))
            if now - since < self._lasts:
                return
            del self._inside[who]


# Python runs one thread at a time. Thirty scripts that begin together would all finish at the end; one after the other,
# half of the class is served in half of that time. No script is stopped: a slow one continues beside the next ones.
SCRIPTS = Queue(1, lasts=LONGEST)
# A short script beside a long computation loses the interpreter at every PyTorch call, and gets it back only after this
# interval; Python's default is five times as long.
sys.setswitchinterval(0.001)
