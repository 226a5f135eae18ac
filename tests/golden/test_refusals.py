"""Hostile inputs that were refused stay refused: a sample in every run, all at night."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.conftest import ROOT
from tests.golden.hostile import SAID, corpus
from tests.golden.refusals import OPENED, REFUSED, found_now, problem, problems_of, sample


def row(outcome: str, megabytes: int = 0) -> dict:
    return {"outcome": outcome, "words": "", "megabytes": megabytes}


@pytest.mark.nightly
def test_the_outcome_of_hostile_inputs_is_no_worse_than_recorded() -> None:
    command = [sys.executable, "-m", "tests.golden.refusals", "check"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]


@pytest.fixture(scope="module")
def drawn(request: pytest.FixtureRequest) -> set[str]:
    """The names of the inputs that the date draws, if this run asks for them."""
    asked = {item.name for item in request.session.items}
    return {hostile.name for hostile in sample(43)} if THE_SAMPLE in asked else set()


@pytest.fixture(scope="module")
def found(request: pytest.FixtureRequest, drawn: set[str]) -> dict[str, dict]:
    """What became of the inputs that this run tries."""
    tried = {item.callspec.params.get("name") for item in request.session.items if hasattr(item, "callspec")}
    said = tried & SAID.keys()
    return found_now([hostile for hostile in corpus() if hostile.name in said | drawn])


@pytest.mark.slow
def test_no_input_of_the_day_has_a_worse_outcome_than_recorded(found: dict[str, dict], drawn: set[str]) -> None:
    assert drawn and not problems_of({name: found[name] for name in drawn})


THE_SAMPLE = test_no_input_of_the_day_has_a_worse_outcome_than_recorded.__name__


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
