"""Selection of the cases for every run; the others run with ``-m nightly``."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

import pytest
from _pytest.mark import ParameterSet

# A family of each kind, with rare features: gated layers and windows; a convolution; relative positions in two stacks.
FAMILIES_BY_DAY = ("hf-gemma2", "hf-deberta", "hf-t5")
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
