"""Selection of the cases for every run; the others run with ``-m nightly``."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence

import pytest
from _pytest.mark import ParameterSet

# A family of each kind, with rare features: gated layers and windows; a convolution; relative positions in two stacks.
FAMILIES_BY_DAY = ("hf-gemma2", "hf-bert", "hf-t5")
# Each pair has a model that writes and one that does not.
KINDS_IN_TURN = (("translator", "bert"), ("gpt", "sentiment"))
SHIPPED_BY_DAY = ("en-fr", "gpt-en", "sentiment", "vit-digits")


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


def in_turn(kinds: Sequence[str], pages: Sequence[str], *, one_in: int = 1) -> list[ParameterSet]:
    """Every page once in every run, with the kinds in turn; all pages with all kinds at night.

    With ``one_in`` 2, every run has every second page.
    """

    def is_by_day(k: int, number: int) -> bool:
        return number % one_in == 0 and (number // one_in + k) % len(kinds) == 0

    return [
        pytest.param(kind, page, marks=() if is_by_day(k, number) else pytest.mark.nightly)
        for k, kind in enumerate(kinds)
        for number, page in enumerate(pages)
    ]


def kinds_by_day(items: Iterable[pytest.Item]) -> None:
    """Leave every second kind of a test that runs with all four kinds of model to the night.

    The tests of a file take the pairs of ``KINDS_IN_TURN`` in turn, so that most pages are opened with all four kinds
    in every run.
    """
    groups: dict[tuple[str, str], dict[str, pytest.Item]] = {}
    for item in items:
        case = getattr(item, "callspec", None)
        if case and (found := re.search(r"(?:\b|tiny-)(translator|gpt|bert|sentiment)\b", case.id)):
            name = item.nodeid.split("[")[0]
            others = f"{case.id[: found.start()]}*{case.id[found.end() :]}"
            groups.setdefault((name, others), {})[found[1]] = item
    every = {*KINDS_IN_TURN[0], *KINDS_IN_TURN[1]}
    whole = {
        key: group
        for key, group in groups.items()
        if group.keys() == every and not any(item.get_closest_marker("nightly") for item in group.values())
    }
    turns: dict[str, int] = {}
    for (name, _), group in whole.items():
        file = name.split("::")[0]
        turns[file] = turns.get(file, -1) + 1
        for kind in KINDS_IN_TURN[(turns[file] + 1) % len(KINDS_IN_TURN)]:
            group[kind].add_marker(pytest.mark.nightly)
