"""A property that is computed once for each object."""

from collections.abc import Callable
from typing import Any, Generic, Self, TypeVar, overload

Value = TypeVar("Value")


class once(Generic[Value]):
    """``functools.cached_property`` as of Python 3.12, for long computations.

    The value is stored in its object. In Python 3.11 the property holds one lock for the whole class during the
    computation: a visitor would wait for the traces of all others, even if the visitor's own is already known.
    """

    def __init__(self, compute: Callable[[Any], Value]) -> None:
        self._compute, self.__doc__ = compute, compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...

    @overload
    def __get__(self, instance: object, owner: type) -> Value: ...

    def __get__(self, instance: object | None, owner: type) -> Self | Value:
        if instance is None:
            return self
        value = vars(instance)[self._name] = self._compute(instance)  # Python finds it there first from now on
        return value
