"""What a run of the script asks the disk or the store, asked once per run.

A page needs a hundred texts, and for each it matters whether its file has changed; files seldom change, and then the
next run sees it. The answers belong to the thread that runs the script and to one run of it: ``begin_run`` forgets
those of the last run, ``end_run`` those of this one, and ``within_a_run`` does both. Where no run has begun (tests,
notebooks, the thread of a long computation), every question is asked anew.
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
    """At the start of a run of the script, in its thread."""
    _answers.set({})


def end_run() -> None:
    """Forget all answers at the end of a run: nothing that it looked up stays in memory because of it."""
    _answers.set(None)


@contextmanager
def within_a_run() -> Iterator[None]:
    """Begin a run and end it; inside of a run that has begun, do neither."""
    if _answers.get() is not None:
        yield
        return
    begin_run()
    try:
        yield
    finally:
        end_run()


def once_a_run(ask: Callable[_Arguments, _Answer]) -> Callable[_Arguments, _Answer]:
    """``ask(*arguments)`` with hashable arguments, whose answer holds until the run ends."""

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
