"""A limit for wrong attempts at a code or a secret. No Streamlit here."""

import threading
import time
from collections import deque
from collections.abc import Callable


class Attempts:
    """At most ``most`` wrong attempts within ``seconds``; after them, no attempt is allowed for a while."""

    def __init__(self, most: int, seconds: float, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._most, self._seconds, self._clock = most, seconds, clock
        self._failures: deque[float] = deque()
        self._lock = threading.Lock()

    def is_allowed(self) -> bool:
        """Return whether another attempt is allowed now."""
        with self._lock:
            while self._failures and self._clock() - self._failures[0] >= self._seconds:
                self._failures.popleft()
            return len(self._failures) < self._most

    def count_failure(self) -> None:
        """Count a wrong attempt."""
        with self._lock:
            self._failures.append(self._clock())
