"""What a run of the script asks the disk, asked once a run: a page needs a hundred texts and asks for each whether its
file has changed; files seldom change, and then the next run sees it.

The answers belong to the thread that runs the script, and to one run of it: ``begin_run`` forgets those of the last.
Where no run has begun (tests, notebooks, a long computation's thread), every question goes to the disk.
"""

from collections.abc import Callable, Hashable
from contextvars import ContextVar
from functools import wraps
from typing import ParamSpec, TypeVar

_Arguments = ParamSpec("_Arguments")
_Answer = TypeVar("_Answer")
_answers: ContextVar[dict[Hashable, object] | None] = ContextVar("what this run was told by the disk", default=None)


def begin_run() -> None:
    """At the start of a run of the script, in its thread."""
    _answers.set({})


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
