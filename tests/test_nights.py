"""The selection of cases for every run."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace

import pytest

from tests import nights


class Case:
    """A collected case of a parametrized test, with the marks that it gets."""

    is_nightly = 0

    def __init__(self, sample: pytest.Mark, test: str, **params: object) -> None:
        self.nodeid, self.callspec, self.sample = f"a.py::{test}", SimpleNamespace(params=params), sample

    def add_marker(self, mark: pytest.MarkDecorator) -> None:
        self.is_nightly += mark.name == "nightly"

    def get_closest_marker(self, name: str) -> pytest.Mark | None:
        return self.sample if name == "sample" else None


def cases_of(sample: pytest.MarkDecorator, test: str = "test") -> list[Case]:
    return [Case(sample.mark, test, page=f"{page}", model=model) for page in range(20) for model in "abc"]


def today(sample: pytest.MarkDecorator, others: Sequence[Case] = (), *, test: str = "test") -> list[tuple[str, str]]:
    """Return what a run draws of three models on each of twenty pages."""
    cases = cases_of(sample, test)
    nights.leave_to_the_night([*others, *cases])
    assert all(case.is_nightly <= 1 for case in cases)
    return [tuple(case.callspec.params.values()) for case in cases if not case.is_nightly]


def test_a_sample_is_drawn_among_the_values_of_the_parameters_that_are_named() -> None:
    drawn = today(pytest.mark.sample("model", of=2))
    assert [page for page, _ in drawn] == [f"{page}" for page in range(20) for _ in range(2)]
    assert len({tuple(model for at, model in drawn if at == page) for page, _ in drawn}) == 3, "each pair on some pages"
    assert len(today(pytest.mark.sample(of=7))) == 7 and len(today(pytest.mark.sample("page", "model"))) == 1


def test_a_test_draws_few_values_and_another_only_where_it_must() -> None:
    sample = pytest.mark.sample("model", values=1)
    assert len({model for _, model in today(sample)}) == 1
    for alone in "abc":
        cases = [
            case
            for case in cases_of(sample)
            if case.callspec.params["model"] == alone or case.callspec.params["page"] != "3"
        ]
        nights.leave_to_the_night(cases)
        drawn = {case.callspec.params["page"]: case.callspec.params["model"] for case in cases if not case.is_nightly}
        assert len(drawn) == 20 and drawn.pop("3") == alone and len({*drawn.values()}) == 1


def test_all_workers_of_a_day_draw_the_same_and_the_next_day_draws_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = []
    for day in ("2026-01-01", "2026-01-01", "2026-01-02"):
        monkeypatch.setattr(nights, "DAY", day)
        drawn.append(today(pytest.mark.sample("model")))
    assert drawn[0] == drawn[1] != drawn[2]


def test_a_file_alone_draws_what_it_draws_in_a_whole_run() -> None:
    sample = pytest.mark.sample("model")
    assert today(sample, others=cases_of(sample, "another")) == today(sample)


def test_tests_that_share_fixtures_draw_the_same() -> None:
    for together in (False, True):
        sample = pytest.mark.sample("model", together=together)
        assert (today(sample) == today(sample, test="another")) is together
