"""Separate threads for these tests, because Playwright's event loop may occupy the main thread."""

from __future__ import annotations

import asyncio
import inspect
from concurrent.futures import ThreadPoolExecutor

import pytest


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool:
    arguments = {name: pyfuncitem.funcargs[name] for name in inspect.signature(pyfuncitem.obj).parameters}
    with ThreadPoolExecutor(1) as alone:
        if inspect.iscoroutinefunction(pyfuncitem.obj):
            alone.submit(asyncio.run, pyfuncitem.obj(**arguments)).result()
        else:
            alone.submit(pyfuncitem.obj, **arguments).result()
    return True
