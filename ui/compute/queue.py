"""The queue for everything that a server does for a limited number at a time; no Streamlit.

Long computations wait in one (``ui/compute/jobs.py``), and so do the scripts of pages when a whole class clicks at
once, and visitors of a server that is full (``ui/shell/admission.py``).
"""

import math
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

LOOK_AGAIN = 0.25  # seconds until a thread in line looks whether it still has to wait
LONGEST = 0.3  # seconds of a script's turn; several times the duration of a page whose numbers are known


@dataclass(eq=False)
class _Place:
    kind: str = ""
    since: float = 0.0  # when its slot was taken, or last asked for


class Queue:
    """A limited number of slots; whoever has none waits in line, in the order of arrival.

    Whoever gives up a slot and wants another one joins the line at its end, so that all get equal shares.

    Args:
        room: Number of slots; a function returns that of a kind, "" for all kinds together, and is asked each time. One
            that waits for a slot of a full kind lets others pass.
        share: Seconds for which a slot is kept in ``share`` while others wait.
        lasts: Seconds without a request after which a slot is taken from its holder for somebody in line, the one
            without a request for longest first.
        is_here: Whether somebody still wants a slot; whoever vanishes says nothing.
        clock: Seconds.
    """

    def __init__(
        self,
        room: int | Callable[[str], int],
        *,
        share: float = 0.0,
        lasts: float = math.inf,
        is_here: Callable[[Hashable], bool] = lambda _: True,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._room = room if callable(room) else lambda _: room
        self._share, self._lasts, self._is_here, self._clock = share, lasts, is_here, clock
        self._inside: dict[Hashable, _Place] = {}  # the one without a request for longest first
        self._line: dict[Hashable, _Place] = {}
        self._changed = threading.Condition()

    def ask(self, who: Hashable, *, kind: str = "") -> int:
        """Return 0 if ``who`` has a slot now, else the position in line, from 1; to be asked again soon."""
        with self._changed:
            now = self._clock()
            for places in (self._inside, self._line):
                for other in [other for other in places if other != who and not self._is_here(other)]:
                    del places[other]
            if who not in self._inside:
                self._line.setdefault(who, _Place(kind))
                self._end_old_slots(now)
                if who not in self._next():
                    return self.position(who)
            place = self._inside.pop(who, None) or self._line.pop(who)
            place.since = now
            self._inside[who] = place
            self._changed.notify_all()  # the one behind may have a slot, too
            return 0

    def enter(self, who: Hashable, *, waits: Callable[[], bool] = lambda: True, kind: str = "") -> bool:
        """Wait for a slot; return ``False`` if ``waits()`` becomes false first."""
        with self._changed:
            try:
                while self.ask(who, kind=kind):
                    if not waits():
                        return False
                    self._changed.wait(min(LOOK_AGAIN, self._lasts))
                return True
            finally:
                if self._line.pop(who, None) is not None:
                    self._changed.notify_all()

    def share(self, who: Hashable, *, waits: Callable[[], bool] = lambda: True) -> bool:
        """Let another one in if the share of ``who`` has ended, then wait for a slot again, like ``enter``."""
        with self._changed:
            place = self._inside[who]
            if not self._line or self._clock() < place.since + self._share:
                return True
            self.leave(who)
            return self.enter(who, waits=waits, kind=place.kind)

    def leave(self, who: Hashable) -> None:
        """Give the slot back, if any."""
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
            next_ones = self._next()
            waiting = [other for other in self._line if other not in next_ones]
            return waiting.index(who) + 1 if who in waiting else 0

    def _next(self) -> list[Hashable]:
        """Return who may take a slot now."""
        found: list[Hashable] = []
        kinds = Counter(place.kind for place in self._inside.values())
        for who, place in self._line.items():
            if len(self._inside) + len(found) >= self._room(""):
                break
            if kinds[place.kind] < self._room(place.kind):
                kinds[place.kind] += 1
                found.append(who)
        return found

    def _end_old_slots(self, now: float) -> None:
        """Take as many old slots as others wait for."""
        while self._inside and len(self._inside) + len(self._line) > self._room(""):
            who = next(iter(self._inside))
            if now - self._inside[who].since < self._lasts:
                return
            del self._inside[who]


# Python runs one thread at a time. Thirty scripts that begin together would all finish at the end; one after the other,
# half of the class is served in half of that time. No script is stopped: a slow one continues beside the next ones.
SCRIPTS = Queue(1, lasts=LONGEST)
# A short script beside a long computation loses the interpreter at every PyTorch call, and gets it back only after this
# interval; Python's default is five times as long.
sys.setswitchinterval(0.001)
