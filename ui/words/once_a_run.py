"""Cache for one run of the script: what a run reads from disk or the store is read once.

A page needs a hundred texts, and each must be current; files rarely change, and the next run notices if one does. The
values belong to one run and its thread: ``begin_run`` discards those of the last run, ``end_run`` those of this one,
and ``within_a_run`` does both. Outside of a run (tests, notebooks, threads of long computations) nothing is cached.
"""

from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import ParamSpec, TypeVar

_Arguments = ParamSpec("_Arguments")
_Answer = TypeVar("_Answer")
_answers: ContextVar[dict[Hashable, object] | None] = ContextVar("what this run was told by the disk", default=None)


def begin_run() -> None:
    """Begin a run of the script, in its thread."""
    _answers.set({})


def end_run() -> None:
    """Discard all values at the end of a run, so that nothing stays in memory because of it."""
    _answers.set(None)


@contextmanager
def within_a_run() -> Iterator[None]:
    """Begin and end a run, unless one has begun already."""
    if _answers.get() is not None:
        yield
        return
    begin_run()
    try:
        yield
    finally:
        end_run()


def once_a_run(ask: Callable[_Arguments, _Answer]) -> Callable[_Arguments, _Answer]:
    """Cache the results of ``ask`` (with hashable arguments) until the run ends."""

    @wraps(ask)
    def remembered(*arguments: _Arguments.args, **named: _Arguments.kwargs) -> _Answer:
        answers = _answers.get()
        if answers is None or named:
            return ask(*arguments, **named)
        question = (ask, *arguments)
        if question not in answers:
            answers[question] = ask(*arguments)
        return answers[question]

    return remembered
