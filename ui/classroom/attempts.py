"""A limit for wrong attempts at a code or a secret. No Streamlit here."""

import threading
import time
from collections import deque
from collections.abc import Callable

MOST, MOST_OF_ADDRESS = 10, 300  # a whole class may share an address
SECONDS = 60.0
_FORGET_FROM = 10_000  # visitors


class Attempts:
    """Wrong attempts of each visitor: who makes too many within ``SECONDS`` has to wait, and nobody else.

    A visitor is a browser at a network address. A program can pretend to be many browsers, so that the attempts from an
    address count, too, but not against a browser that has succeeded before.
    """

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._failures: dict[tuple[str, str], deque[float]] = {}  # of ("browser", …) and ("address", …)
        self._known: dict[str, None] = {}  # browsers that have succeeded
        self._lock = threading.Lock()

    def is_allowed(self, browser: str, address: str) -> bool:
        """Return whether this visitor may try now."""
        with self._lock:
            if self._count(("browser", browser)) >= MOST:
                return False
            return browser in self._known or self._count(("address", address)) < MOST_OF_ADDRESS

    def count_failure(self, browser: str, address: str) -> None:
        """Count a wrong attempt."""
        with self._lock:
            if len(self._failures) >= _FORGET_FROM:
                for visitor in [*self._failures]:
                    self._count(visitor)
            for visitor in (("browser", browser), ("address", address)):
                self._failures.setdefault(visitor, deque(maxlen=MOST_OF_ADDRESS)).append(self._clock())

    def count_success(self, browser: str) -> None:
        """Remember a browser that has succeeded."""
        with self._lock:
            self._known.pop(browser, None)
            self._known[browser] = None
            if len(self._known) > _FORGET_FROM:
                del self._known[next(iter(self._known))]

    def _count(self, visitor: tuple[str, str]) -> int:
        failures = self._failures.get(visitor, deque())
        while failures and self._clock() - failures[0] >= SECONDS:
            failures.popleft()
        if not failures:
            self._failures.pop(visitor, None)
        return len(failures)
