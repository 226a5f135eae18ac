"""Work that can be stopped: a check before every forward pass says whether to go on.

An analysis is a loop over forward passes. Instead of handing a "stop" through every signature, the embedding of each
stack, with which a pass begins, carries a permanent hook; what it asks belongs to the call that runs (a
``ContextVar``), not to the model, as in ``transformer.probes``. Without ``interruptible`` it asks nobody.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from torch import nn

_ask: ContextVar[Callable[[], None] | None] = ContextVar("glassformer_before_pass", default=None)


@contextmanager
def interruptible(before_pass: Callable[[], None]) -> Iterator[None]:
    """Call ``before_pass()`` before every stack's pass that this context makes; what it raises ends the work there."""
    token = _ask.set(before_pass)
    try:
        yield
    finally:
        _ask.reset(token)


def before_pass(_module: nn.Module, _inputs: tuple) -> None:
    """The hook of ``transformer.embedding.Embedding``."""
    ask = _ask.get()
    if ask is not None:
        ask()
