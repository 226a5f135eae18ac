"""Store of everything computed once for all sessions: checkpoints, traces, and derived results.

A result is found by its key, usually a ``Run``, and by a name. It is shared and read-only, and contains
nothing of a person's state. Limits are in bytes, since sizes depend on what was typed: a trace of twelve tokens takes
2.5 MB, one of 256 tokens 60 MB.
"""

import gc
import sys
from collections import Counter, OrderedDict
from collections.abc import Callable, Collection, Hashable, Mapping
from contextlib import nullcontext
from dataclasses import is_dataclass
from threading import Lock
from typing import Any, NamedTuple, TypeVar
from weakref import WeakSet, WeakValueDictionary

import streamlit as st

from transformer import Checkpoint, Trace
from transformer.runs.run import Run
from ui.server.freed_memory import give_back_holes
from ui.server.settings import settings
from ui.server.streamlit_private import runs_a_script
from ui.words.texts import common

Value = TypeVar("Value")
Name = str | tuple[Hashable, ...]  # "trace", or ("swaps", rows, …)
Key = tuple[Hashable, Name]

# Each shelf has its own limit (GLASSFORMER_<SHELF>_MB), so that a few long traces do not displace what took minutes.
SHELVES = ("models", "traces", "results", "figures")
FIGURE = "figure"  # the name of such a figure
_LEAST = {"models": 2}  # Compare shows two side by side, however large they are
_GIVEN_BACK = 32_000_000  # bytes that are dropped until free memory is returned to the system
_OVERHEAD = 4096  # bytes: the key with its sentence, and the objects around the arrays


def limits() -> dict[str, int]:
    """Return the limit of each shelf in bytes, from the environment."""
    return {shelf: 1_000_000 * getattr(settings(), f"{shelf}_mb") for shelf in SHELVES}


def weigh(value: object, kept: Collection[int] = ()) -> tuple[int, str]:
    """Return the bytes that a value takes, and the shelf on which it belongs.

    Parts whose ``id`` is in ``kept`` are counted elsewhere, and so is the model of a ``Run``.
    """
    seen, parts, total = set(kept), [value], _OVERHEAD
    shelf = "models" if isinstance(value, Checkpoint) else "results"
    while parts:
        part = parts.pop()
        if isinstance(part, str | int | float | None):  # true of most parts; the test below takes longer
            total += sys.getsizeof(part)
            continue
        if isinstance(part, Trace):
            shelf = "traces"
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
    return total, shelf


class _Kept(NamedTuple):
    value: Any
    n_bytes: int
    shelf: str


class _OneAtATime:
    """The lock of a value that is being computed, kept while a thread computes or awaits it."""

    def __init__(self) -> None:
        self.lock = Lock()


class Store:
    """Results by key and by name; ``limits`` sets the bytes of each shelf.

    A full shelf drops the values that have not been used for the longest time, but always keeps its last value (two
    models). Several threads may request the same result: one computes, the others wait for it. An exception, including
    the one by which Streamlit ends a run, is raised in the caller and nothing is kept. When a model is dropped, so is
    everything made with it, which would keep the model in memory; what is still being computed with it is not kept
    either.
    """

    def __init__(
        self, limits: Mapping[str, int], *, weigh: Callable[[Any, Collection[int]], tuple[int, str]] = weigh
    ) -> None:
        self.limits = dict(limits)
        self._weigh = weigh
        self._kept: OrderedDict[Key, _Kept] = OrderedDict()  # what was not used for longest comes first
        self._n_bytes: Counter[str] = Counter()  # by shelf
        self._making: WeakValueDictionary[Key, _OneAtATime] = WeakValueDictionary()
        self._dropped: WeakSet[Any] = WeakSet()  # models
        self._n_dropped = 0  # bytes since free memory was last returned
        self._lock = Lock()

    def get(self, of: Hashable, name: Name, make: Callable[[], Value], *, wait: str = "") -> Value:
        """Return the result ``name`` of a run (or another key), computed by ``make`` if it is not stored.

        ``wait`` names the text that the page shows in the meantime, in its language.
        """
        key = (of, name)
        hash(key)  # this reads the files of a new checkpoint, so it must not happen under the lock
        with self._lock:
            if (kept := self._use(key)) is not None:
                return kept.value
            making = self._making.setdefault(key, _OneAtATime())
        with making.lock:
            with self._lock:
                if (kept := self._use(key)) is not None:  # another thread has just made it
                    return kept.value
            # In a test, a script or the thread of a long job there is no page.
            with st.spinner(common(wait)) if wait and runs_a_script() else nullcontext():
                value = make()
            self.keep(of, name, value)
            return value

    def known(self, of: Hashable, name: Name) -> Any | None:
        """Return the result if it is stored, else ``None``."""
        with self._lock:
            kept = self._use((of, name))
        return None if kept is None else kept.value

    def keep(self, of: Hashable, name: Name, value: object) -> None:
        """Store a result, replacing an older one of the same name."""
        key = (of, name)
        with self._lock:
            others = [kept.value for kept in self._kept.values()]
        counted = {id(part) for other in others for part in (other, getattr(other, "model", None))}
        size, shelf = self._weigh(value, counted)
        shelf = "figures" if name == FIGURE else shelf
        with self._lock:
            self._forget(key)
            if _model_of(of) in self._dropped:
                return
            if shelf == "models":
                self._dropped.discard(value.model)
            self._kept[key] = _Kept(value, size, shelf)
            self._n_bytes[shelf] += size
            while self._n_bytes[shelf] > self.limits[shelf] and len(self._on(shelf)) > _LEAST.get(shelf, 1):
                self._forget(self._on(shelf)[0])
        self._give_back()

    def clear(self) -> None:
        """Drop everything."""
        with self._lock:
            self._kept.clear()
            self._n_bytes.clear()

    def give_up(self, shelf: str) -> None:
        """Empty one shelf; results made with a model are dropped together with it."""
        with self._lock:
            for key in self._on(shelf):
                self._forget(key)
        gc.collect()  # a guest and its hooks refer to each other
        self._give_back()

    def n_bytes(self, shelf: str) -> int:
        """Return how many bytes a shelf holds."""
        return self._n_bytes[shelf]

    def __len__(self) -> int:
        return len(self._kept)

    def _on(self, shelf: str) -> list[Key]:
        return [key for key, kept in self._kept.items() if kept.shelf == shelf]

    def _use(self, key: Key) -> _Kept | None:
        if (kept := self._kept.get(key)) is not None:
            self._kept.move_to_end(key)
        return kept

    def _forget(self, key: Key) -> None:
        if key not in self._kept:
            return
        value, size, shelf = self._kept.pop(key)
        self._n_bytes[shelf] -= size
        self._n_dropped += size
        if shelf != "models":
            return
        # The same model may be stored again for other languages.
        if all(kept.value.model is not value.model for kept in self._kept.values() if kept.shelf == "models"):
            self._dropped.add(value.model)
        for of, name in [*self._kept]:
            if of is value or getattr(of, "checkpoint", None) is value or _model_of(of) in self._dropped:
                self._forget((of, name))

    def _give_back(self) -> None:
        """Return dropped memory to the system, once there is much of it."""
        if self._n_dropped >= _GIVEN_BACK:
            self._n_dropped = 0
            give_back_holes()


def _model_of(of: Hashable) -> Any | None:
    """Return the model of a checkpoint or of a run."""
    return getattr(getattr(of, "checkpoint", of), "model", None)


store = Store(limits())
