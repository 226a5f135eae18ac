"""Stores of classes: the memory of this process, or Redis for several replicas. No Streamlit here.

Both delete a class at its end, and by themselves when it expires; Redis does so even if all replicas have stopped.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Protocol

from ui.classroom.class_state import Change, Class, from_json, to_json
from ui.server.settings import settings

MOST_CLASSES = 20
_PREFIX = "glassformer:class:"
_RECENT = 0.5  # seconds for which a replica answers all its students from one reading
_TIMEOUT = 2.0  # seconds; a page does not wait longer for Redis
_PAUSE = 5.0  # seconds before a Redis that could not be reached is tried again, so that not every page waits for it
Clock = Callable[[], float]


class StoreError(Exception):
    """The store cannot be reached. The message contains no address, which may include a password."""


class Store(Protocol):
    """Classes by code."""

    def open(self, state: Class) -> bool:
        """Add a class; return whether there was space and its code was free."""

    def read(self, code: str) -> Class | None:
        """Return a class, ``None`` if there is none."""

    def change(self, code: str, change: Change) -> Class | None:
        """Apply a change atomically and return the class, ``None`` if there is none."""

    def end(self, code: str) -> None:
        """Delete a class, with everything about its students."""

    def codes(self) -> list[str]:
        """Return the codes of all classes."""


class MemoryStore:
    """Classes in the memory of this process, for a server that is one process."""

    def __init__(self, *, clock: Clock = time.time) -> None:
        self._clock = clock
        self._classes: dict[str, Class] = {}
        self._lock = threading.Lock()

    def open(self, state: Class) -> bool:
        """See ``Store``."""
        with self._lock:
            self._forget_expired()
            if state.code in self._classes or len(self._classes) >= MOST_CLASSES:
                return False
            self._classes[state.code] = state
            return True

    def read(self, code: str) -> Class | None:
        """See ``Store``."""
        with self._lock:
            self._forget_expired()
            return self._classes.get(code)

    def change(self, code: str, change: Change) -> Class | None:
        """See ``Store``."""
        with self._lock:
            self._forget_expired()
            if code not in self._classes:
                return None
            self._classes[code] = change(self._classes[code])
            return self._classes[code]

    def end(self, code: str) -> None:
        """See ``Store``."""
        with self._lock:
            self._classes.pop(code, None)

    def codes(self) -> list[str]:
        """See ``Store``."""
        with self._lock:
            self._forget_expired()
            return sorted(self._classes)

    def _forget_expired(self) -> None:
        now = self._clock()
        for code in [code for code, state in self._classes.items() if state.expires <= now]:
            del self._classes[code]


class RedisStore:
    """Classes in Redis: one key per class, with optimistic locking (WATCH, MULTI, EXEC) and an expiry.

    Args:
        url: ``redis://``, ``rediss://`` or ``unix://``, as ``redis.from_url`` reads it.
        clock: Seconds since 1970.
    """

    def __init__(self, url: str, *, clock: Clock = time.time) -> None:
        import redis  # the extra ``class`` of the package

        self._clock, self._error = clock, redis.RedisError
        self._redis = redis.Redis.from_url(url, socket_timeout=_TIMEOUT, socket_connect_timeout=_TIMEOUT)
        self._recent: dict[str, tuple[float, Class | None]] = {}
        self._failed = -math.inf  # time of the last failed attempt to reach it
        self._lock = threading.Lock()  # threads of this process need not discover each other's changes by retrying

    def open(self, state: Class) -> bool:
        """See ``Store``."""
        if len(self.codes()) >= MOST_CLASSES:
            return False
        with self._reaching():
            return bool(self._redis.set(_key(state.code), to_json(state), nx=True, exat=_whole(state.expires)))

    def read(self, code: str) -> Class | None:
        """See ``Store``; the result is at most half a second old."""
        now = time.monotonic()
        when, state = self._recent.get(code, (-1.0, None))
        if when < 0 or now - when > _RECENT:
            with self._reaching():
                state = _from(self._redis.get(_key(code)))
            self._remember(code, state)
        return state if state and state.expires > self._clock() else None

    def change(self, code: str, change: Change) -> Class | None:
        """See ``Store``."""

        def apply(pipe):
            state = _from(pipe.get(_key(code)))
            changed = None if state is None else change(state)
            pipe.multi()
            if changed is not None and changed is not state:
                pipe.set(_key(code), to_json(changed), exat=_whole(changed.expires))
            return changed

        with self._lock, self._reaching():
            state = self._redis.transaction(apply, _key(code), value_from_callable=True)
        self._remember(code, state)
        return state

    def end(self, code: str) -> None:
        """See ``Store``."""
        self._recent.pop(code, None)
        with self._reaching():
            self._redis.delete(_key(code))

    def codes(self) -> list[str]:
        """See ``Store``."""
        with self._reaching():
            return sorted(key.decode().removeprefix(_PREFIX) for key in self._redis.scan_iter(match=f"{_PREFIX}*"))

    def _remember(self, code: str, state: Class | None) -> None:
        now = time.monotonic()
        recent = {other: one for other, one in [*self._recent.items()] if now - one[0] <= _RECENT}
        self._recent = {**recent, code: (now, state)}

    @contextmanager
    def _reaching(self) -> Iterator[None]:
        if time.monotonic() - self._failed < _PAUSE:
            raise StoreError("it could not be reached a moment ago")
        try:
            yield
        except (self._error, OSError) as error:
            self._failed = time.monotonic()
            raise StoreError(type(error).__name__) from None


def _key(code: str) -> str:
    return _PREFIX + code


def _whole(seconds: float) -> int:
    return int(seconds) + 1


def _from(text: bytes | None) -> Class | None:
    """Return the class of a stored text; ``None`` without one, or if another version wrote it."""
    try:
        return None if text is None else from_json(text)
    except ValueError:
        return None


def refresh(store: Store, code: str, change: Change) -> Class | None:
    """Return a class after a change, which reaches the store only if it makes a difference."""
    state = store.read(code)
    return state if state is None or change(state) is state else store.change(code, change)


@lru_cache(maxsize=1)
def class_store() -> Store:
    """Return the store of this server."""
    url = settings().redis
    return RedisStore(url) if url else MemoryStore()
