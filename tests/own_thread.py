"""Run functions that need an event loop of their own, even after tests in the browser.

Playwright's loop runs in the main thread of a worker from the first browser test to the end, and ``asyncio.run``
raises in a thread in which a loop runs.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

P, T = ParamSpec("P"), TypeVar("T")


def in_own_thread(function: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
    """Call ``function`` in a new thread, e.g. ``in_own_thread(asyncio.run, visit())``; return its result."""
    with ThreadPoolExecutor(max_workers=1) as thread:
        return thread.submit(function, *arguments, **named).result()
