"""The small wrong changes of ``mutants.toml`` still find their code and their tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.mutants import ROOT, Mutant, NotFoundError, mutants, verdict

CODE = """
def scale(width):
    return 1 / width


class Layer:
    def scale(self, width):
        return (
            1 / width
        )
"""


def test_each_change_finds_its_code_once_and_its_tests() -> None:
    assert not [problem for change in mutants().values() for problem in change.problems(ROOT)]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "code.py").write_text(CODE, encoding="utf-8")
    return tmp_path


def change(code: str, inside: str = "") -> Mutant:
    return Mutant("name", "Sentence.", code, "2 / width", ("tests/test_a.py::test_b",), inside, ("*.py",))


def test_code_is_found_in_a_function_or_a_method_however_it_is_broken_into_lines(tree: Path) -> None:
    _, text = change("( 1 / width )", "Layer.scale").place(tree)
    assert text.count("1 / width") == 1 and "return 2 / width" in text.partition("class Layer")[2]


@pytest.mark.parametrize(("code", "inside", "count"), [("1 / width", "", 2), ("1 / width", "scale", 2), ("3", "", 0)])
def test_code_that_stands_nowhere_or_twice_asks_for_its_new_form(
    tree: Path, code: str, inside: str, count: int
) -> None:
    with pytest.raises(
        NotFoundError, match=rf"stands {count} times .* write this change for the new form .* Sentence\."
    ):
        change(code, inside).place(tree)


def test_only_a_failed_test_counts_as_noticed() -> None:
    assert verdict(1, "E   AssertionError: 1 == 2") == ""
    assert "pass" in verdict(0, "") and "status 4" in verdict(4, "") and "seconds" in verdict(124, "3 seconds")
    assert "does not run" in verdict(1, "E   NameError: name 'x' is not defined")
