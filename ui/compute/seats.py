"""Who may use a server that has room for so many visitors at once; the others stand in line. No Streamlit here."""

import math
import threading
import time
from collections.abc import Callable, Hashable


class Seats:
    """``count`` seats. A free one goes to the first in line who is there. Who has one keeps it until they are gone, or
    have not asked for ``idle`` seconds while somebody waits: then the one who has been idle longest gives it up.

    Nobody is told when a browser vanishes, so everybody who asks also says how to find out who is there.
    """

    def __init__(self, count: int, *, idle: float = math.inf, clock: Callable[[], float] = time.monotonic) -> None:
        self._count, self._idle, self._clock = count, idle, clock
        self._taken: dict[Hashable, float] = {}  # when each of them asked last; the longest idle first
        self._line: list[Hashable] = []
        self._lock = threading.Lock()

    def take(self, who: Hashable, *, present: Callable[[Hashable], bool]) -> int:
        """0 where ``who`` has a seat now, else the place in line, from 1. ``present``: whether somebody is there."""
        with self._lock:
            now = self._clock()
            self._taken = {other: asked for other, asked in self._taken.items() if present(other)}
            self._line = [other for other in self._line if present(other)]
            if who in self._taken:
                del self._taken[who]  # to the end
                self._taken[who] = now
                return 0
            if who not in self._line:
                self._line.append(who)
            while self._taken and len(self._taken) + len(self._line) > self._count:
                other = next(iter(self._taken))
                if now - self._taken[other] < self._idle:
                    break
                del self._taken[other]
            free = max(0, self._count - len(self._taken))
            place = self._line.index(who) + 1
            if place > free:
                return place - free
            self._line.remove(who)
            self._taken[who] = now
            return 0
