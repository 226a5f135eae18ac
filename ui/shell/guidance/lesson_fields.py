"""The fields of one table of a lesson's file; errors name the file, the step and the field."""

from collections.abc import Callable, Sequence
from typing import Any

from transformer.errors import MessageError
from transformer.text.message import did_you_mean, short_repr


class Fields:
    """A table of known names, whose values are read one by one.

    Args:
        values: The table as the file has it.
        where: The place, for errors: "lessons/en/03-mine.toml, step 2".
        known: All names that the table may have.
        example: What to write instead of anything that is not a table.

    Raises:
        MessageError: If it is not a table, or has an unknown name; the methods raise it for a wrong value.
    """

    def __init__(self, values: Any, where: str, known: Sequence[str], *, example: str) -> None:
        if not isinstance(values, dict):
            raise MessageError(f"{where} is {short_repr(values)}; {example}")
        for name in values:
            if name not in known:
                problem = did_you_mean(name, known, otherwise=f"known: {', '.join(known)}")
                raise MessageError(f"{where} has {short_repr(name)}; {problem}")
        self.values, self.where = values, where

    def check(self, fits: object, name: str, advice: str) -> None:
        """Raise an error about the value of ``name`` unless it ``fits``."""
        if not fits:
            raise MessageError(f"{self.where}: {name} is {short_repr(self.values.get(name))}{advice}")

    def text(self, name: str, default: str | None = None) -> str:
        """Return a text, or ``default`` if it is missing; ``None`` means that it is required."""
        value = self.values.get(name, default)
        if value is None:
            raise MessageError(f"{self.where}: {name} is missing")
        if name in self.values:
            self.check(isinstance(value, str) and value.strip(), name, ", not a text")
        return value.strip()

    def texts(self, name: str, fits: Callable[[str], object], advice: str) -> tuple[str, ...]:
        """Return several texts; a single one need not be a list."""
        found = self.values.get(name, [])
        found = [found] if isinstance(found, str) else found
        is_list = isinstance(found, list) and all(isinstance(one, str) for one in found)
        self.check(is_list and all(map(fits, found)), name, advice)
        return tuple(found)

    def flag(self, name: str) -> bool:
        """Return an optional yes or no, no if it is missing."""
        self.check(isinstance(self.values.get(name, False), bool), name, "; write true or false")
        return self.values.get(name, False)

    def number(self, name: str, least: int, most: int, advice: str) -> int:
        """Return a required integer."""
        value = self.values.get(name)
        self.check(type(value) is int and least <= value <= most, name, advice)
        return value

    def refuse_without(self, name: str, others: Sequence[str]) -> None:
        """Raise an error if the table has one of ``others`` but not ``name``."""
        if not self.values.get(name) and (lonely := [other for other in others if other in self.values]):
            raise MessageError(f"{self.where} has {lonely[0]} but no {name}")
