"""Stores of classes: the memory of this process, or Redis for several servers. No Streamlit here.

Both delete a class at its end, and by themselves when it expires; Redis does so even if all servers have stopped.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache

from ui.classroom.class_state import Change, Class, from_json, to_json
from ui.server.settings import settings

MOST_CLASSES = 20
_PREFIX = "glassformer:class:"
_RECENT = 0.5  # seconds for which a server answers all its students from one reading
_TIMEOUT = 2.0  # seconds; a page does not wait longer for Redis
_PAUSE = 5.0  # seconds before a Redis that could not be reached is tried again, so that not every page waits for it


class StoreError(Exception):
    """The store cannot be reached. The message contains no address, which may include a password."""


class Store:
    """Classes by code, in the memory of this process."""

    def __init__(self, *, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._classes: dict[str, Class] = {}
        self._lock = threading.Lock()

    def open(self, state: Class) -> bool:
        """Add a class; return whether there was space and its code was free."""
        if len(self.codes()) >= MOST_CLASSES or self.read(state.code) is not None:
            return False
        return self._swap(state.code, lambda old: old or state) is state

    def change(self, code: str, change: Change) -> Class | None:
        """Apply a change atomically and return the class, ``None`` if there is none."""
        return self._swap(code, lambda old: old and change(old))

    def refresh(self, code: str, change: Change) -> Class | None:
        """Like ``change``, but write only if the change makes a difference."""
        state = self.read(code)
        return state if state is None or change(state) is state else self.change(code, change)

    def end(self, code: str) -> None:
        """Delete a class, with everything about its students."""
        self._swap(code, lambda _: None)

    def read(self, code: str) -> Class | None:
        """Return a class, ``None`` if there is none."""
        return self._swap(code, lambda state: state)

    def codes(self) -> list[str]:
        """Return the codes of all classes."""
        return sorted(code for code, state in [*self._classes.items()] if state.expires > self._clock())

    def _swap(self, code: str, change: Callable[[Class | None], Class | None]) -> Class | None:
        """Replace a class atomically, delete it (``None``) or add it; return what is there now."""
        with self._lock:
            now = self._clock()
            self._classes = {code: state for code, state in self._classes.items() if state.expires > now}
            changed = change(self._classes.get(code))
            self._classes.pop(code, None)
            if changed is not None:
                self._classes[code] = changed
            return changed


class RedisStore(Store):
    """Classes in Redis: one key each, with optimistic locking (WATCH, MULTI, EXEC) and an expiry.

    Args:
        url: ``redis://``, ``rediss://`` or ``unix://``, as ``redis.from_url`` reads it.
        clock: Seconds since 1970.
    """

    def __init__(self, url: str, *, clock: Callable[[], float] = time.time) -> None:
        import redis  # the extra ``class`` of the package

        super().__init__(clock=clock)
        self._error = redis.RedisError
        self._redis = redis.Redis.from_url(url, socket_timeout=_TIMEOUT, socket_connect_timeout=_TIMEOUT)
        self._recent: dict[str, tuple[float, Class | None]] = {}
        self._failed = -math.inf  # time of the last failed attempt to reach it

    def read(self, code: str) -> Class | None:
        """See ``Store``; the result is at most half a second old."""
        when, state = self._recent.get(code, (-math.inf, None))
        if time.monotonic() - when > _RECENT:
            with self._reaching():
                state = self._remember(code, _from(self._redis.get(_PREFIX + code)))
        return state if state and state.expires > self._clock() else None

    def codes(self) -> list[str]:
        """See ``Store``."""
        with self._reaching():
            return sorted(key.decode().removeprefix(_PREFIX) for key in self._redis.scan_iter(match=f"{_PREFIX}*"))

    def _swap(self, code: str, change: Callable[[Class | None], Class | None]) -> Class | None:
        key = _PREFIX + code

        def apply(pipe):
            state = _from(pipe.get(key))
            changed = change(state)
            pipe.multi()
            if changed is None:
                pipe.delete(key)
            elif changed is not state:
                pipe.set(key, to_json(changed), exat=int(changed.expires) + 1)
            return changed

        with self._lock, self._reaching():  # only other servers' changes need to be discovered by retrying
            return self._remember(code, self._redis.transaction(apply, key, value_from_callable=True))

    def _remember(self, code: str, state: Class | None) -> Class | None:
        now = time.monotonic()
        recent = {other: one for other, one in [*self._recent.items()] if now - one[0] <= _RECENT}
        self._recent = {**recent, code: (now, state)}
        return state

    @contextmanager
    def _reaching(self) -> Iterator[None]:
        if time.monotonic() - self._failed < _PAUSE:
            raise StoreError("it could not be reached a moment ago")
        try:
            yield
        except (self._error, OSError) as error:
            self._failed = time.monotonic()
            raise StoreError(type(error).__name__) from None


def _from(text: bytes | None) -> Class | None:
    """Return the class of a stored text; ``None`` without one, or if another version wrote it."""
    try:
        return None if text is None else from_json(text)
    except ValueError:
        return None


@lru_cache(maxsize=1)
def class_store() -> Store:
    """Return the store of this server."""
    url = settings().redis
    return RedisStore(url) if url else Store()
