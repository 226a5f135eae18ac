"""The selection of cases for every run."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from tests.nights import kinds_by_day

KINDS = ("translator", "gpt", "bert", "sentiment")


class Case:
    """A collected case of a parametrized test, with the marks that it gets."""

    def __init__(self, test: str, case: str, *marks: str) -> None:
        self.nodeid, self.callspec, self.marks = f"{test}[{case}]", SimpleNamespace(id=case), [*marks]

    def add_marker(self, mark: pytest.MarkDecorator) -> None:
        self.marks.append(mark.name)

    def get_closest_marker(self, name: str) -> str | None:
        return name if name in self.marks else None


def by_day(cases: list[Case]) -> list[str]:
    kinds_by_day(cases)
    return [case.nodeid.split("::")[1] for case in cases if not case.marks]


def test_a_test_of_four_kinds_runs_with_two_and_the_next_test_with_the_others() -> None:
    cases = [Case(f"a.py::{test}", f"tiny-{kind}-1") for test in ("one", "two") for kind in KINDS]
    assert by_day(cases) == [
        *("one[tiny-translator-1]", "one[tiny-bert-1]"),
        *("two[tiny-gpt-1]", "two[tiny-sentiment-1]"),
    ]


def test_the_pairs_take_turns_among_the_other_parameters_of_a_test_and_begin_anew_in_a_file() -> None:
    cases = [Case(f"{file}::test", f"{kind}-{more}") for file in "ab" for more in "xy" for kind in KINDS]
    assert by_day(cases) == ["test[translator-x]", "test[bert-x]", "test[gpt-y]", "test[sentiment-y]"] * 2


def test_other_tests_stay_as_they_are() -> None:
    some = [Case("a.py::three", kind) for kind in KINDS[1:]]
    chosen = [Case("a.py::chosen", kind, *(["nightly"] if kind == "gpt" else [])) for kind in KINDS]
    others = [Case("a.py::other", "bert-en"), Case("a.py::other", "x")]
    assert len(by_day([*some, *chosen, *others])) == 3 + 3 + 2
