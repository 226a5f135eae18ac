"""A cache that all sessions share and that is limited by bytes, for results whose size depends on what was typed.

A trace of twelve tokens takes 2.5 MB, one of 256 tokens 60 MB: so many entries would be too few of the one or too much
of the other.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from threading import Lock
from typing import Generic, TypeVar

Value = TypeVar("Value")


@dataclass
class _Making:
    """A value that somebody computes at the moment, and how many are concerned."""

    lock: Lock = field(default_factory=Lock)
    concerned: int = 0


class ByteLimitedCache(Generic[Value]):
    """What was used last stays, up to ``limit`` bytes; ``size_of`` says how many a value takes.

    Several threads may ask for the same key at once: one computes, the others wait for it. An exception, also the one
    by which Streamlit ends a run, goes to the caller and nothing is kept. A value larger than ``limit`` is kept alone.
    """

    def __init__(self, *, limit: int, size_of: Callable[[Value], int]) -> None:
        self.limit = limit
        self._size_of = size_of
        self._values: OrderedDict[Hashable, tuple[Value, int]] = OrderedDict()
        self._making: dict[Hashable, _Making] = {}
        self._lock = Lock()
        self.n_bytes = 0

    def __len__(self) -> int:
        return len(self._values)

    def get(self, key: Hashable, compute: Callable[[], Value]) -> Value:
        """The value of ``key``, computed where it is not there (any more)."""
        with self._lock:
            if key in self._values:
                return self._used(key)
            making = self._making.setdefault(key, _Making())
            making.concerned += 1
        try:
            with making.lock:
                with self._lock:
                    if key in self._values:  # somebody else has just computed it
                        return self._used(key)
                value = compute()
                with self._lock:
                    self._keep(key, value)
                return value
        finally:
            with self._lock:
                making.concerned -= 1
                if not making.concerned:
                    del self._making[key]

    def clear(self) -> None:
        """Forget all values."""
        with self._lock:
            self._values.clear()
            self.n_bytes = 0

    def _used(self, key: Hashable) -> Value:
        self._values.move_to_end(key)
        return self._values[key][0]

    def _keep(self, key: Hashable, value: Value) -> None:
        size = self._size_of(value)
        self._values[key] = value, size
        self.n_bytes += size
        while self.n_bytes > self.limit and len(self._values) > 1:
            _, (_, freed) = self._values.popitem(last=False)
            self.n_bytes -= freed
