"""Seats for a limited number of visitors at a time; others wait in line. No Streamlit here."""

import math
import threading
import time
from collections.abc import Callable, Hashable


class Seats:
    """``count`` seats; a free one goes to the first visitor in line who is present.

    A visitor keeps a seat until leaving, or until ``idle`` seconds without a request while somebody waits: then the one
    who has been idle longest loses it. A vanished browser is not reported, so every request also provides a way to find
    out who is present.
    """

    def __init__(self, count: int, *, idle: float = math.inf, clock: Callable[[], float] = time.monotonic) -> None:
        self._count, self._idle, self._clock = count, idle, clock
        self._taken: dict[Hashable, float] = {}  # visitor → time of its last request, the longest idle first
        self._line: list[Hashable] = []
        self._lock = threading.Lock()

    def take(self, who: Hashable, *, present: Callable[[Hashable], bool]) -> int:
        """Return 0 if ``who`` has a seat now, else the position in line, from 1.

        ``present`` returns whether a visitor is still there.
        """
        with self._lock:
            now = self._clock()
            self._taken = {other: asked for other, asked in self._taken.items() if present(other)}
            self._line = [other for other in self._line if present(other)]
            if who in self._taken:
                del self._taken[who]  # moves the visitor to the end
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
