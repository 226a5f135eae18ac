"""Selection of the cases for every run; the others run with ``-m nightly``."""

from __future__ import annotations

import os
import random
from collections.abc import Collection, Iterable
from datetime import date

import pytest
from _pytest.mark import ParameterSet

# The seed of what a day's run draws from the cases of the night; all workers of a run have that of the first.
DAY = os.environ.setdefault("GLASSFORMER_DAY", date.today().isoformat())
TURN = sum(DAY.encode())  # what takes turns begins elsewhere the next day


def by_day(cases: Iterable[object], day: Collection[object], *, id_of: str = "") -> list[ParameterSet]:
    """Return ``cases`` for ``parametrize``: those in ``day`` in every run, all at night.

    ``id_of`` is an attribute by whose value a case is listed in ``day`` and named.
    """
    named = [(case, getattr(case, id_of) if id_of else case) for case in cases]
    missing = set(day) - {name for _, name in named}
    if missing:
        raise ValueError(f"there are no cases {sorted(missing)} to try in every run")
    return [
        pytest.param(case, id=name if isinstance(name, str) else None, marks=() if name in day else pytest.mark.nightly)
        for case, name in named
    ]


def leave_to_the_night(items: Iterable[pytest.Item]) -> None:
    """Mark as nightly what the marker ``sample`` does not draw today.

    ``@pytest.mark.sample("model", of=2)``: among cases that differ in ``model`` alone, two; without names, among all.
    With ``values=8``, one of eight models that the day draws for the whole test comes first: making or opening a model
    may take longer than the test.
    With ``together=True``, tests of a file with the same cases draw the same, so that a fixture makes only those.
    """
    groups: dict[str, dict[str, list[pytest.Item]]] = {}  # by test, and by the values of its other parameters
    for item in items:
        if mark := item.get_closest_marker("sample"):
            others = {name: value for name, value in item.callspec.params.items() if name not in mark.args}
            of_test = groups.setdefault(item.nodeid.split("[")[0], {})
            of_test.setdefault(repr(others) if mark.args else "", []).append(item)
    for test, of_test in groups.items():
        values = [*dict.fromkeys(_value(item) for group in of_test.values() for item in group)]
        options = next(item for group in of_test.values() for item in group).get_closest_marker("sample").kwargs
        few = random.Random(f"{DAY} {test}").sample(values, min(len(values), options.get("values", len(values))))
        for number, group in enumerate(of_test.values()):
            seed = test.split("::")[0] if options.get("together") else f"{test} {number}"
            drawn = random.Random(f"{DAY} {seed}").sample(group, len(group))
            drawn.sort(key=lambda item: _value(item) not in few)  # the draw decides among equals
            for item in drawn[options.get("of", 1) :]:
                item.add_marker(pytest.mark.nightly)


def _value(item: pytest.Item) -> str:
    """Return the values of the parameters among which the marker draws."""
    return repr([item.callspec.params[name] for name in item.get_closest_marker("sample").args])
