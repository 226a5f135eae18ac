"""Store of everything computed once for all sessions: checkpoints, traces, and derived results.

A result is found by its key, usually a ``Run``, and by a name. It is shared and read-only, and contains
nothing of a person's state. Limits are in bytes, since sizes depend on what was typed: a trace of twelve tokens takes
2.5 MB, one of 256 tokens 60 MB.
"""

import gc
import sys
from collections import OrderedDict
from collections.abc import Callable, Collection, Hashable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field, is_dataclass
from threading import Lock
from typing import Any, TypeVar
from weakref import WeakSet, WeakValueDictionary

import streamlit as st

from transformer.runs.run import Run
from ui.server.freed_memory import give_back_holes
from ui.server.settings import settings
from ui.server.streamlit_private import runs_a_script
from ui.words.texts import common

Value = TypeVar("Value")
Name = str | tuple[Hashable, ...]  # "lens", or ("lens", rows, …): the kind comes first, then its arguments
Key = tuple[Hashable, Name]

# Each kind of result has its own limit, so that a few long traces do not displace what took minutes.
# GLASSFORMER_<SHELF>_MB overrides the number of megabytes.
MEGABYTES = {
    "models": 256,  # all of ours; en-fr takes 28 MB, an upload at most 100 MB
    "traces": 128,  # one sentence each for a class of fifty, or two texts of maximum length; 30 ms to make again
    "results": 64,
    "figures": 16,  # figures that an open page can still save as a file or show as a table; 2 to 100 KB each
}
_SHELVES = {
    "checkpoint": "models",
    "spoken": "models",  # the same weights, which are counted once
    "trace": "traces",
    "positions": "traces",
    "experiment": "traces",
    "figure": "figures",
}
_LEAST = {"models": 2}  # Compare shows two side by side, however large they are
_GIVEN_BACK = 32_000_000  # bytes that are dropped until free memory is returned to the system
_OVERHEAD = 4096  # bytes: the key with its sentence, and the objects around the arrays


def limits() -> dict[str, int]:
    """Return the limit of each shelf in bytes, from the environment."""
    configured = settings()
    return {shelf: 1_000_000 * (getattr(configured, f"{shelf}_mb") or number) for shelf, number in MEGABYTES.items()}


def size_of(value: object, kept: Collection[int] = ()) -> int:
    """Return the bytes that a value takes.

    Parts whose ``id`` is in ``kept`` are counted elsewhere, and so is the model of a ``Run``.
    """
    seen, parts, total = set(kept), [value], _OVERHEAD
    while parts:
        part = parts.pop()
        if isinstance(part, str | int | float | None):  # true of most parts; the test below takes longer
            total += sys.getsizeof(part)
            continue
        if id(part) in seen or isinstance(part, Run):
            continue
        seen.add(id(part))
        if isinstance(size := getattr(part, "n_bytes", getattr(part, "nbytes", None)), int):
            total += size  # recorded activations, arrays, tensors
        elif hasattr(part, "named_parameters"):  # a model
            total += sum(parameter.nbytes for parameter in part.parameters())
        elif isinstance(part, Mapping):
            parts += (*part.keys(), *part.values())
        elif isinstance(part, tuple | list | set | frozenset):
            parts += part
        elif is_dataclass(part) and hasattr(part, "__dict__"):
            parts += vars(part).values()
        else:
            total += sys.getsizeof(part)
    return total


@dataclass
class _Shelf:
    """Least-recently-used cache of ``limit`` bytes; ``least`` values are kept whatever their size."""

    limit: int
    least: int = 1
    values: OrderedDict[Key, tuple[Any, int]] = field(default_factory=OrderedDict)
    n_bytes: int = 0


class _OneAtATime:
    """The lock of a value that is being computed, as long as a thread is concerned."""

    def __init__(self) -> None:
        self.lock = Lock()


class Store:
    """Results by key and by name; ``limits`` sets the bytes of each shelf.

    Several threads may request the same result: one computes, the others wait for it. An exception, including the one
    by which Streamlit ends a run, is raised in the caller and nothing is kept. When a model is dropped, so is
    everything made with it, which would keep the model in memory; what is still being computed with it is not kept
    either.
    """

    def __init__(self, limits: Mapping[str, int], *, size_of: Callable[[Any, Collection[int]], int] = size_of) -> None:
        self._shelves = {name: _Shelf(limit, _LEAST.get(name, 1)) for name, limit in limits.items()}
        self._size_of = size_of
        self._making: WeakValueDictionary[Key, _OneAtATime] = WeakValueDictionary()
        self._dropped: WeakSet[Any] = WeakSet()  # models
        self._n_dropped = 0  # bytes since free memory was last returned
        self._lock = Lock()

    def get(self, of: Hashable, name: Name, make: Callable[[], Value], *, wait: str = "") -> Value:
        """Return the result ``name`` of a run (or another key), computed by ``make`` if it is not stored.

        ``wait`` names the text that the page shows in the meantime, in its language.
        """
        key, shelf = (of, name), self._shelf_of(name)
        hash(key)  # this reads the files of a new checkpoint, so it must not happen under the lock
        with self._lock:
            if key in shelf.values:
                return _mark_used(shelf, key)
            making = self._making.setdefault(key, _OneAtATime())
        with making.lock:
            with self._lock:
                if key in shelf.values:  # another thread has just made it
                    return _mark_used(shelf, key)
            with _show_waiting(wait):
                value = make()
            self.keep(of, name, value)
            return value

    def known(self, of: Hashable, name: Name) -> Any | None:
        """Return the result if it is stored, else ``None``."""
        shelf = self._shelf_of(name)
        with self._lock:
            return _mark_used(shelf, (of, name)) if (of, name) in shelf.values else None

    def keep(self, of: Hashable, name: Name, value: object) -> None:
        """Store a result, replacing an older one of the same name."""
        key, shelf = (of, name), self._shelf_of(name)
        with self._lock:
            values = [other for shelf in self._shelves.values() for other, _ in shelf.values.values()]
        kept = {id(part) for other in values for part in (other, getattr(other, "model", None))}
        size = self._size_of(value, kept)
        with self._lock:
            self._forget(shelf, key)
            if _model_of(of) in self._dropped:
                return
            if shelf is self._shelves.get("models"):
                self._dropped.discard(getattr(value, "model", None))
            shelf.values[key] = value, size
            shelf.n_bytes += size
            while shelf.n_bytes > shelf.limit and len(shelf.values) > shelf.least:
                self._forget(shelf, next(iter(shelf.values)))
        self._give_back()

    def clear(self) -> None:
        """Drop everything."""
        with self._lock:
            for shelf in self._shelves.values():
                shelf.values.clear()
                shelf.n_bytes = 0

    def give_up(self, shelf: str) -> None:
        """Empty one shelf; results made with a model are dropped together with it."""
        with self._lock:
            for key in [*self._shelves[shelf].values]:
                self._forget(self._shelves[shelf], key)
        gc.collect()  # a guest and its hooks refer to each other
        self._give_back()

    def n_bytes(self, shelf: str) -> int:
        """Return how many bytes a shelf holds."""
        return self._shelves[shelf].n_bytes

    def __len__(self) -> int:
        return sum(len(shelf.values) for shelf in self._shelves.values())

    def _shelf_of(self, name: Name) -> _Shelf:
        return self._shelves[_SHELVES.get(kind_of(name), "results")]

    def _forget(self, shelf: _Shelf, key: Key) -> None:
        if key not in shelf.values:
            return
        value, size = shelf.values.pop(key)
        shelf.n_bytes -= size
        self._n_dropped += size
        if shelf is not self._shelves.get("models"):
            return
        model = getattr(value, "model", None)
        # The same model may be stored again for other languages.
        if model is not None and all(getattr(other, "model", None) is not model for other, _ in shelf.values.values()):
            self._dropped.add(model)
        for other in self._shelves.values():
            for of, name in [*other.values]:
                if of is value or getattr(of, "checkpoint", None) is value or _model_of(of) in self._dropped:
                    self._forget(other, (of, name))

    def _give_back(self) -> None:
        """Return to the system what was dropped, once it is much."""
        if self._n_dropped >= _GIVEN_BACK:
            self._n_dropped = 0
            give_back_holes()


def kind_of(name: Name) -> str:
    """Return "lens" for "lens" and for ("lens", rows, …)."""
    return name if isinstance(name, str) else str(name[0])


def _model_of(of: Hashable) -> Any | None:
    """Return the model of a checkpoint or of a run."""
    return getattr(getattr(of, "checkpoint", of), "model", None)


def _mark_used(shelf: _Shelf, key: Key) -> Any:
    shelf.values.move_to_end(key)
    return shelf.values[key][0]


def _show_waiting(wait: str) -> Any:
    # In a test, a script or the thread of a long job there is no page.
    return st.spinner(common(wait)) if wait and runs_a_script() else nullcontext()


store = Store(limits())
