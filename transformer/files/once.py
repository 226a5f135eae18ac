"""A property that is computed once for each object."""

from collections.abc import Callable
from typing import Any, Generic, TypeVar

Value = TypeVar("Value")


class once(Generic[Value]):
    """``functools.cached_property`` as it is from Python 3.12 on, for what takes long: the value is kept in its object.

    In Python 3.11 that one holds a lock of the whole class while it computes: whoever opens a page would wait until the
    traces of everybody else are there, even where their own is known already.
    """

    def __init__(self, compute: Callable[[Any], Value]) -> None:
        self._compute, self.__doc__ = compute, compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: object | None, owner: type | None = None) -> "Value | once[Value]":
        if instance is None:
            return self
        value = vars(instance)[self._name] = self._compute(instance)  # Python looks there first from now on
        return value
