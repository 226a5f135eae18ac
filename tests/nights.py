"""Which of many alike cases every run tries: the others run with ``-m nightly``."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

import pytest
from _pytest.mark import ParameterSet

# A family of each kind, with what is rarest: gated layers and windows; a convolution; relative positions in two stacks.
FAMILIES_BY_DAY = ("hf-gemma2", "hf-deberta", "hf-t5")
SHIPPED_BY_DAY = ("en-fr", "gpt-en", "sentiment", "vit-digits")


def by_day(cases: Iterable[object], day: Collection[object], *, id_of: str = "") -> list[ParameterSet]:
    """``cases`` for ``parametrize``: those of ``day`` in every run, all in the night. ``id_of``: an attribute by whose
    value a case is known in ``day`` and named."""
    named = [(case, getattr(case, id_of) if id_of else case) for case in cases]
    missing = set(day) - {name for _, name in named}
    if missing:
        raise ValueError(f"there are no cases {sorted(missing)} to try in every run")
    return [
        pytest.param(case, id=name if isinstance(name, str) else None, marks=() if name in day else pytest.mark.nightly)
        for case, name in named
    ]


def in_turn(kinds: Sequence[str], pages: Sequence[str]) -> list[ParameterSet]:
    """Every page once in every run, with the kinds in turn; all pages with all kinds in the night."""
    return [
        pytest.param(kind, page, marks=() if (number + k) % len(kinds) == 0 else pytest.mark.nightly)
        for k, kind in enumerate(kinds)
        for number, page in enumerate(pages)
    ]
