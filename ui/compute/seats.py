"""Who may use a server that has room for so many visitors at once; the others stand in line. No Streamlit here."""

import threading
from collections.abc import Callable, Hashable


class Seats:
    """``count`` seats. Who has one keeps it until they are gone; a free one goes to the first in line who is there.

    Nobody is told when a browser vanishes, so everybody who asks also says how to find out who is there.
    """

    def __init__(self, count: int) -> None:
        self._count = count
        self._taken: list[Hashable] = []
        self._line: list[Hashable] = []
        self._lock = threading.Lock()

    def take(self, who: Hashable, *, present: Callable[[Hashable], bool]) -> int:
        """0 where ``who`` has a seat now, else the place in line, from 1. ``present``: whether somebody is there."""
        with self._lock:
            self._taken = [other for other in self._taken if present(other)]
            self._line = [other for other in self._line if present(other)]
            if who in self._taken:
                return 0
            if who not in self._line:
                self._line.append(who)
            free = max(0, self._count - len(self._taken))
            place = self._line.index(who) + 1
            if place > free:
                return place - free
            self._line.remove(who)
            self._taken.append(who)
            return 0
