"""Building a network from a third-party config, with limits on its modules, time and memory."""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from torch import nn
from torch.nn.modules.module import register_module_module_registration_hook

from transformer.errors import CheckpointError

MOST_MODULES = 2**15  # the largest networks that are known have about 10,000
SECONDS = 10.0  # of processor time; they take about two
NUMBERS_PER_SECOND = 20_000_000  # at least, where a network receives its weights and computes
_FLOAT = 4  # bytes
_PAUSE = 0.05  # seconds between two looks at the clock

_n_left: ContextVar[int | None] = ContextVar("glassformer_modules_left", default=None)


class _TooMuch(BaseException):
    """Signal that a limit is exceeded, which code that handles exceptions passes on."""


@contextmanager
def bounded_build(n_numbers: int = 0) -> Iterator[None]:
    """Limit what this thread builds: ``MOST_MODULES`` modules, and ``SECONDS`` of its processor time.

    Other threads are not held up: no lock is taken.

    Args:
        n_numbers: Number of weights that are read in this block; the time allowed grows with it.

    Raises:
        CheckpointError: If a limit is exceeded.
    """
    token, seconds = _n_left.set(MOST_MODULES), SECONDS + n_numbers / NUMBERS_PER_SECOND
    try:
        with _limit_time(seconds):
            yield
    except _TooMuch as error:
        raise CheckpointError(
            f"the network has more than {MOST_MODULES:,} modules, or takes more than {seconds:.0f} seconds of "
            "processor time to build"
        ) from error
    finally:
        _n_left.reset(token)


@dataclass(frozen=True)
class NetworkSize:
    """Bytes that a network needs, counted from its shapes on the meta device.

    Attributes:
        parameters: Its weights, in float32.
        buffers: Its tables that no file holds, such as causal masks and rotary angles.
        trial: A bound on what trial passes record: the input and output of every module, and the maps.
    """

    parameters: int
    buffers: int
    trial: int

    @property
    def while_opening(self) -> int:
        """Bytes needed besides the weights; a table takes three times its size while it is computed."""
        return 3 * self.buffers + self.trial


def size_of_network(shapes: nn.Module, n_tokens: int, n_heads: int, n_layers: int, *, longest: int = 0) -> NetworkSize:
    """Return the size of a network whose trial passes read ``n_tokens`` and ``longest`` tokens.

    The inputs and outputs of all modules are recorded in the first pass, only maps and hidden states in the others.
    """
    parameters, buffers = list(shapes.parameters()), list(shapes.buffers())
    widths = sum(parameter.shape[0] + parameter.shape[-1] for parameter in parameters if parameter.ndim > 1)
    # Two passes are compared, and a recording has two copies of most vectors: one module's output is another's input.
    everything = 4 * n_tokens * widths + 2 * n_layers * n_heads * n_tokens**2
    trial = _FLOAT * max(everything, longest * widths + 4 * n_layers * n_heads * longest**2)
    return NetworkSize(
        _FLOAT * sum(parameter.numel() for parameter in parameters), sum(each.nbytes for each in buffers), trial
    )


def _count_module(module: nn.Module, name: str, added: nn.Module | None) -> None:
    if (left := _n_left.get()) is not None:
        if left <= 0:
            raise _TooMuch
        _n_left.set(left - 1)


register_module_module_registration_hook(_count_module)


@contextmanager
def _limit_time(seconds: float) -> Iterator[None]:
    """Raise ``_TooMuch`` in this thread once it has used ``seconds`` of processor time.

    Python raises it between two instructions, so a single call into C is not interrupted.
    """
    thread, ended, lock = threading.get_ident(), threading.Event(), threading.Lock()
    used = _clock_of(thread)
    end = used() + seconds

    def watch() -> None:
        while (left := end - used()) > 0:
            if ended.wait(max(left, _PAUSE)):
                return
        with lock:
            if not ended.is_set():
                _raise_in(thread, _TooMuch)

    threading.Thread(target=watch, daemon=True).start()
    try:
        yield
    finally:
        with lock:
            ended.set()
        _raise_in(thread, None)  # withdraws what has not been raised yet


def _clock_of(thread: int) -> Callable[[], float]:
    """Return a function that reads a thread's processor time, or the time if there is no such clock."""
    if not hasattr(time, "pthread_getcpuclockid"):
        return time.monotonic
    clock = time.pthread_getcpuclockid(thread)
    return lambda: time.clock_gettime(clock)


def _raise_in(thread: int, exception: type[BaseException] | None) -> None:
    given = None if exception is None else ctypes.py_object(exception)
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), given)
