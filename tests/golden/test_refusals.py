"""Hostile inputs that were refused stay refused: a sample in every run, all at night."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.conftest import ROOT
from tests.golden.hostile import SAID, corpus
from tests.golden.refusals import OPENED, REFUSED, found_now, problem


def row(outcome: str, megabytes: int = 0) -> dict:
    return {"outcome": outcome, "words": "", "megabytes": megabytes}


@pytest.mark.slow
@pytest.mark.parametrize("every", ["43", pytest.param("1", marks=pytest.mark.nightly)])
def test_the_outcome_of_hostile_inputs_is_no_worse_than_recorded(every: str) -> None:
    command = [sys.executable, "-m", "tests.golden.refusals", "check", "--every", every]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]


@pytest.fixture(scope="module")
def found(request: pytest.FixtureRequest) -> dict[str, dict]:
    """What became of the inputs that this run tries."""
    tried = {item.callspec.params.get("name") for item in request.session.items if hasattr(item, "callspec")}
    return found_now([hostile for hostile in corpus() if hostile.name in SAID and hostile.name in tried])


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
