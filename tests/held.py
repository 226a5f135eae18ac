"""Objects that a browser session keeps in memory between two runs, found by following references."""

from __future__ import annotations

import gc
import sys
from collections import deque
from collections.abc import Iterator, Mapping
from functools import lru_cache
from types import ModuleType

import numpy as np
import torch
from streamlit.testing.v1 import AppTest

from transformer import Checkpoint, Decoding
from transformer.runs.run import Run
from transformer.runs.traces import Trace
from transformer.toy.learner import ToyLearner

LARGEST_ARRAY = 64 * 1024  # bytes
_SHARED = (Checkpoint, Decoding, Run, Trace, torch.nn.Module, torch.Tensor)


def held_by(app: AppTest) -> list[object]:
    """Return the roots: session state, callbacks of all widgets and components, and fragments."""
    state = app._session_state._state
    return [
        state._new_session_state,
        state._old_state,
        state._new_widget_state,
        state._key_id_mapper,
        app._fragment_storage,
    ]


def shared_objects(roots: list[object]) -> list[str]:
    """Return one line for each shared object in ``roots``, with the path by which it is reached.

    Classes, modules and global names of modules belong to the program and are skipped. A page's script is not a module,
    so its names count. The tiny model that a session trains itself belongs to that session.
    """
    found = [*_reached(roots, _program(len(sys.modules)))]
    if found:
        _program.cache_clear()  # it may be a global name that is newer than the last module
        found = [*_reached(roots, _program(len(sys.modules)))]
    return found


@lru_cache(maxsize=1)
def _program(_: int) -> dict[int, object]:
    """Return the global names by their ``id``, anew when a module has been loaded.

    They are held, so that an ``id`` stays unique.
    """
    modules = [vars(module) for name, module in sys.modules.copy().items() if name != "__main__"]
    return {id(thing): thing for names in modules for thing in (names, *names.values())}


def _reached(roots: list[object], program: Mapping[int, object]) -> Iterator[str]:
    waiting = deque((root, None) for root in roots)
    seen: dict[int, tuple[object, object]] = {}
    while waiting:
        thing, holder = waiting.popleft()
        if id(thing) in seen or id(thing) in program or isinstance(thing, type | ModuleType | ToyLearner):
            continue
        seen[id(thing)] = thing, holder  # keeps it alive, so that its id stays unique
        if isinstance(thing, _SHARED) or (isinstance(thing, np.ndarray) and thing.nbytes > LARGEST_ARRAY):
            yield _path(thing, seen)
        else:
            waiting.extend((part, thing) for part in gc.get_referents(thing))


def _path(thing: object, seen: dict[int, tuple[object, object]]) -> str:
    names = []
    while thing is not None:
        said = f" {thing.nbytes} bytes" if isinstance(thing, np.ndarray) else ""
        names.append(f"{getattr(thing, '__qualname__', type(thing).__qualname__)}{said}")
        thing = seen[id(thing)][1]
    return " < ".join(names)
