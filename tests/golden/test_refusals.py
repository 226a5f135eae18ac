"""Hostile inputs that were refused stay refused: a sample in every run, all at night."""

from __future__ import annotations

import pytest

from tests.golden.hostile import SAID, corpus
from tests.golden.refusals import OPENED, REFUSED, drawn, found_now, problem, problems


def row(outcome: str, megabytes: int = 0) -> dict:
    return {"outcome": outcome, "words": "", "megabytes": megabytes}


@pytest.fixture(scope="module")
def found(request: pytest.FixtureRequest) -> dict[str, dict]:
    """What became of the inputs that this run tries."""
    cases = [
        item.callspec.params
        for item in request.session.items
        if item.path == request.path and hasattr(item, "callspec")
    ]
    tried = {case.get("name") for case in cases}
    tried |= {hostile.name for case in cases if "every" in case for hostile in drawn(case["every"])}
    return found_now([hostile for hostile in corpus() if hostile.name in tried])


@pytest.mark.slow
@pytest.mark.parametrize("every", [43, pytest.param(1, marks=pytest.mark.nightly)])
def test_the_outcome_of_hostile_inputs_is_no_worse_than_recorded(every: int, found: dict[str, dict]) -> None:
    assert problems({hostile.name: found[hostile.name] for hostile in drawn(every)}) == []


@pytest.mark.parametrize("name", SAID)
def test_what_every_run_refuses(name: str, found: dict[str, dict]) -> None:
    word, outcome = SAID[name], found[name]["outcome"]
    assert outcome == (OPENED if word is None else REFUSED) and (word or "") in found[name]["words"], found[name]


@pytest.mark.parametrize(
    ("was", "now", "listed", "worse"),
    [
        ("refused", "opened", True, True),
        ("refused", "failed", True, True),
        ("opened", "stopped", True, True),
        ("opened", "refused", False, True),
        ("opened", "refused", True, False),
        ("stopped", "refused", False, False),
        ("refused", "refused", False, False),
    ],
)
def test_what_counts_as_worse(was: str, now: str, listed: bool, worse: bool) -> None:
    assert bool(problem(row(was), row(now), listed=listed)) is worse


def test_memory_has_a_tolerance() -> None:
    assert not problem(row("refused", 100), row("refused", 250), listed=False)
    assert problem(row("refused", 100), row("refused", 300), listed=False) == "needs 300 MB; needed 100 MB"
